# The Debian packages that scripts/package.sh lets CPack make: maki, maki-mpi, which trains on several machines, and
# libmaki-dev. With SOURCE_DATE_EPOCH in the environment, the same source makes the same packages.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME maki)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # or it would precede that of each package
set(CPACK_PACKAGE_CONTACT "The maki authors <maki@maki.invalid>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)

string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/changelog CONTENT "maki (${PROJECT_VERSION}) unstable; urgency=medium

  * The changes are those of CHANGELOG.md.

 -- ${CPACK_PACKAGE_CONTACT}  ${date}
")
execute_process(COMMAND gzip -9nc ${PROJECT_BINARY_DIR}/changelog OUTPUT_FILE ${PROJECT_BINARY_DIR}/changelog.gz)

# maki_package(<component> <package> <section> <dependencies> <first line> <text>): a package with all files of a component.
function(maki_package component name section depends summary text)
  string(TOUPPER ${component} key)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${name} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_SECTION ${section} PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
  set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${component} PARENT_SCOPE)
  install(FILES ${PROJECT_SOURCE_DIR}/cmake/package/copyright ${PROJECT_BINARY_DIR}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${name} COMPONENT ${component})
endfunction()

maki_package(program maki science "" "trains Transformer language models on a CPU" "\
maki trains a Transformer on a text file, within minutes and without a GPU,
continues a run from its checkpoints, writes text with the model, and
exchanges models with other programs.")
if(TARGET maki_mpi)
  maki_package(ranks maki-mpi science "maki (= ${PROJECT_VERSION})" "training on several machines for maki" "\
With this module several processes of maki, started by mpirun, train one
model.")
endif()
maki_package(development libmaki-dev libdevel
  "libfmt-dev, libxxhash-dev, libutf8proc-dev, libpcre2-dev, libtomlplusplus-dev, pkgconf"
  "library of tensors, autograd and Transformers for C++" "\
Headers, static libraries and CMake files of maki: tensors, reverse-mode
automatic differentiation, Transformer layers, optimizers and training.")
include(CPack)
