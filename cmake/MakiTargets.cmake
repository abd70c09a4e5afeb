# How maki's own targets are compiled: C++20, warnings as errors, never -ffast-math, never -march=native. With
# -ffp-contract=off, the compiler does not fuse multiplications and additions by itself; code that wants fusion calls
# MulAdd.
set(MAKI_SANITIZE "" CACHE STRING "Comma-separated list of sanitizers, as for -fsanitize=")
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer") # -O0 is 46 times slower with Highway
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

function(maki_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Werror -ffp-contract=off -fno-math-errno)
  if(MAKI_SANITIZE)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      # Under sanitizers, GCC 12 wrongly reports uninitialised members in its own <regex> (GCC bug 105562).
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    else()
      # The sources test the macros with which GCC tells which sanitizers are enabled; Clang does not define them.
      foreach(sanitizer address thread)
        if(MAKI_SANITIZE MATCHES ${sanitizer})
          string(TOUPPER ${sanitizer} name)
          target_compile_definitions(${target} PUBLIC __SANITIZE_${name}__)
        endif()
      endforeach()
    endif()
    target_compile_options(${target} PUBLIC -fsanitize=${MAKI_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${MAKI_SANITIZE})
  endif()
  if(MAKI_BUILD_FUZZERS)
    target_compile_options(${target} PUBLIC -fsanitize=fuzzer-no-link)
  endif()
endfunction()

# One static library per folder: maki_library(<folder> [further sources…]) adds maki_<folder>, exported as maki::<folder>,
# of all .cpp files below the folder, except those below cli/.
function(maki_library folder)
  set(target maki_${folder})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/cli/")
  add_library(${target} STATIC ${sources} ${ARGN})
  add_library(maki::${folder} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  maki_compile_options(${target})
endfunction()
