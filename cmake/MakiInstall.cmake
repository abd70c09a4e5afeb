# Installs the libraries with their headers and a CMake package. Users call find_package(maki) and link maki::nn,
# maki::optim and so on. Headers keep their folders: #include "autograd/tape.h".
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/maki)

install(TARGETS maki_autograd maki_nn maki_optim maki_data maki_train EXPORT makiTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS maki RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program) # scripts/install.sh installs only this component
install(DIRECTORY autograd nn optim data train DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/maki
        FILES_MATCHING PATTERN "*.h" PATTERN "kernels" EXCLUDE)
install(EXPORT makiTargets NAMESPACE maki:: DESTINATION ${package_dir})

configure_package_config_file(cmake/makiConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/makiConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/makiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/makiConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/makiConfigVersion.cmake
        DESTINATION ${package_dir})
