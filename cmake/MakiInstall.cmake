# Public headers, installation and the CMake package. Users call find_package(maki), link maki::nn, maki::optim and so on,
# and include <maki/nn/layers.h>.
include(CMakePackageConfigHelpers)

# What a program includes that trains, saves, loads and generates. What these include is installed with them.
set(public_headers
    autograd/core/parallel.h
    autograd/gradcheck.h autograd/ops.h autograd/parameter.h autograd/recompute.h autograd/tape.h autograd/tensor.h
    nn/features.h nn/layers.h nn/model.h nn/scope.h nn/generate/beam.h nn/generate/generate.h
    nn/models/encoder.h nn/models/gpt.h nn/models/linear.h nn/models/seq2seq.h nn/models/transformer_xl.h
    optim/adam.h optim/clip.h optim/lr_schedule.h optim/make_optimizer.h optim/muon.h optim/parameter_optimizer.h
    optim/sgd.h
    data/builtin/stories.h data/dataset/dataset.h data/dataset/window_batches.h data/text/corpus.h data/io/error.h
    data/tokenizer/char_tokenizer.h data/tokenizer/tokenizer.h data/tokenizer/tokenizer_files.h
    train/run/config/config.h train/loop/evaluate.h train/loop/generate_text.h
    train/loop/language_model_task.h train/run/loaded_model.h train/loop/session.h train/loop/tasks.h
    train/loop/trainer.h data/io/atomic_file.h train/run/new_run.h train/run/parameters_file.h)
set(unread ${public_headers})
while(unread)
  list(POP_FRONT unread header)
  file(STRINGS ${PROJECT_SOURCE_DIR}/${header} includes REGEX "^#include \"")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" include ${include})
    if(NOT include IN_LIST public_headers)
      list(APPEND public_headers ${include})
      list(APPEND unread ${include})
    endif()
  endforeach()
endwhile()
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${public_headers})
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
  install(TARGETS maki_${library} EXPORT maki_${library}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(EXPORT maki_${library} NAMESPACE maki:: DESTINATION ${package_dir} FILE ${library}.cmake COMPONENT development)
endforeach()
install(DIRECTORY ${public_include_dir}/maki DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)

configure_package_config_file(cmake/makiConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/makiConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/makiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/makiConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/makiConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT development)

# What scripts/install.sh installs: the component "program", and "ranks", which trains on several machines.
install(TARGETS maki RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
if(TARGET maki_mpi)
  install(TARGETS maki_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/maki COMPONENT ranks)
endif()

# Installs what the program prints for these arguments as a file below share/.
function(maki_install_text folder name)
  set(text ${PROJECT_BINARY_DIR}/share/${name})
  set(filter "")
  if(name MATCHES "\\.gz$")
    set(filter | gzip -9n)
  endif()
  add_custom_command(OUTPUT ${text} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/share
                     COMMAND maki ${ARGN} ${filter} > ${text} DEPENDS maki VERBATIM)
  set_property(GLOBAL APPEND PROPERTY maki_texts ${text})
  install(FILES ${text} DESTINATION ${CMAKE_INSTALL_DATADIR}/${folder} COMPONENT program)
endfunction()
maki_install_text(man/man1 maki.1.gz --man)
maki_install_text(bash-completion/completions maki --completion bash)
# Where a zsh looks: Debian's, or one that reads what was installed beside it.
set(zsh_folder zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(zsh_folder zsh/vendor-completions)
endif()
maki_install_text(${zsh_folder} _maki --completion zsh)
maki_install_text(fish/vendor_completions.d maki.fish --completion fish)
get_property(texts GLOBAL PROPERTY maki_texts)
add_custom_target(maki_texts ALL DEPENDS ${texts})

if(PROJECT_IS_TOP_LEVEL)
  include(MakiPackage)
endif()
