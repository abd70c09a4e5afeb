# Public headers, installation and the CMake package. Users call find_package(maki), link maki::nn, maki::optim and so on,
# and include <maki/nn/layers.h>.
include(CMakePackageConfigHelpers)

# Everything is public except kernels, the implementation of ops, benchmarks and the command line.
file(GLOB public_headers RELATIVE ${PROJECT_SOURCE_DIR} CONFIGURE_DEPENDS
     autograd/*.h autograd/core/*.h nn/*.h nn/*/*.h optim/*.h data/*/*.h train/config/*.h train/run/*.h train/loop/*.h)
string(REPLACE ";" "|" header_list "${public_headers}")
set(public_include_dir ${PROJECT_BINARY_DIR}/include CACHE INTERNAL "Copies of the public headers, below maki/")
list(TRANSFORM public_headers PREPEND ${PROJECT_SOURCE_DIR}/ OUTPUT_VARIABLE header_files)
list(TRANSFORM public_headers PREPEND ${PROJECT_BINARY_DIR}/include/maki/ OUTPUT_VARIABLE header_copies)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/public_headers.stamp
  # Without this, what includes a copy would be compiled again only by the build after the one that changed the copy.
  BYPRODUCTS ${header_copies}
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DDESTINATION=${public_include_dir}/maki "-DHEADERS=${header_list}"
          -P ${PROJECT_SOURCE_DIR}/cmake/public_headers.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/public_headers.stamp
  DEPENDS ${header_files} cmake/public_headers.cmake
  VERBATIM)
add_custom_target(maki_public_headers ALL DEPENDS ${PROJECT_BINARY_DIR}/public_headers.stamp)

# Lets a target of this build include headers as users do.
function(maki_use_public_headers target)
  add_dependencies(${target} maki_public_headers)
  target_include_directories(${target} BEFORE PRIVATE ${public_include_dir})
endfunction()

set(libraries autograd nn optim data train)
# Before anything is copied: what was not built would otherwise stop the installation halfway.
set(needed ${PROJECT_BINARY_DIR}/public_headers.stamp $<TARGET_FILE:maki>)
foreach(library ${libraries})
  list(APPEND needed $<TARGET_FILE:maki_${library}>)
endforeach()
install(CODE "set(needed \"${needed}\")
  foreach(file IN LISTS needed)
    if(NOT EXISTS \"\${file}\")
      message(FATAL_ERROR \"\${file} is missing, and nothing was installed; first: cmake --build ${PROJECT_BINARY_DIR}\")
    endif()
  endforeach()")

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/maki)
foreach(library ${libraries})
  install(TARGETS maki_${library} EXPORT maki_${library} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT maki_${library} NAMESPACE maki:: DESTINATION ${package_dir} FILE ${library}.cmake)
endforeach()
install(TARGETS maki RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program) # scripts/install.sh installs only this component
install(DIRECTORY ${public_include_dir}/maki DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

configure_package_config_file(cmake/makiConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/makiConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/makiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/makiConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/makiConfigVersion.cmake
        DESTINATION ${package_dir})
