# How a target of ours is compiled. C++20, warnings are errors, no contraction that the source does not ask for
# (-ffp-contract=off: what is to be fused says MulAdd), never -ffast-math, never -march=native.
set(MAKI_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
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
      # GCC 12 sees uninitialised members in its own <regex> under sanitizers (bug 105562).
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    else()
      # Clang defines no macros that say which sanitizer is on; the sources ask for GCC's.
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
endfunction()

# One static library a folder: maki_library(<folder> <sources>…) makes maki_<folder>, exported as maki::<folder>.
function(maki_library folder)
  set(target maki_${folder})
  add_library(${target} STATIC ${ARGN})
  add_library(maki::${folder} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/maki>)
  maki_compile_options(${target})
endfunction()
