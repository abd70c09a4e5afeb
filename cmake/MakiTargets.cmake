# How maki's own targets are compiled: C++20, never -ffast-math, never -march=native. With -ffp-contract=off, the compiler
# does not fuse multiplications and additions by itself; code that wants fusion calls MulAdd. Warnings are errors where the
# tests are built, which is where maki is developed: a newer compiler may warn about more, and that must not stop a user.
set(MAKI_SANITIZE "" CACHE STRING "Comma-separated list of sanitizers, as for -fsanitize=")
# The flags of Release are CMake's, -O3 -DNDEBUG, unless the user sets others; those of Debug are not.
if(CMAKE_CXX_FLAGS_DEBUG STREQUAL "-g")
  # -O0 is 46 times slower with Highway. The assertions of libstdc++ notice an index beyond a span or an empty optional even
  # inside allocated memory, where AddressSanitizer sees nothing wrong; -D_GLIBCXX_DEBUG would need other libraries.
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS")
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

function(maki_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF COMPILE_WARNING_AS_ERROR ${MAKI_BUILD_TESTS})
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -ffp-contract=off -fno-math-errno)
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

# Sets `result` to Highway's name of the best SIMD target that this machine has and that kernels are compiled for.
function(maki_host_target result)
  separate_arguments(words UNIX_COMMAND "${CMAKE_CXX_COMPILER_ARG1}") # g++ of CXX="ccache g++"
  set(probe ${CMAKE_CXX_COMPILER} ${words} -march=native -dM -E -x c++ /dev/null)
  execute_process(COMMAND ${probe} OUTPUT_VARIABLE macros ERROR_VARIABLE errors RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    list(JOIN probe " " probe)
    message(FATAL_ERROR "The SIMD target of this machine is unknown, because this failed with ${status}: ${probe}\n${errors}\n"
                        "Set MAKI_HOST_ONLY to OFF, which compiles kernels for all targets")
  endif()
  set(AVX3 AVX512F AVX512VL AVX512DQ AVX512BW AVX512CD)
  set(AVX2 AVX2 BMI BMI2 F16C FMA LZCNT)
  set(SSE4 SSE4_1 SSE4_2 AES PCLMUL)
  foreach(target AVX3 AVX2 SSE4 SCALAR)
    set(complete TRUE)
    foreach(macro IN LISTS ${target})
      if(NOT macros MATCHES "#define __${macro}__ ")
        set(complete FALSE)
      endif()
    endforeach()
    if(complete)
      message(STATUS "Kernels for this machine alone: ${target}")
      set(${result} ${target} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

# Lets a target compile kernels, which are compiled once for every SIMD target. Of Highway only headers are used.
function(maki_simd target)
  target_include_directories(${target} SYSTEM PRIVATE $<TARGET_PROPERTY:hwy::hwy,INTERFACE_INCLUDE_DIRECTORIES>)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
    # Every ARM64 CPU has NEON, which is the only target there. SVE is disabled because its vectors, whose size is unknown
    # when they are compiled, cannot be elements of arrays, and register tiles are such arrays.
    target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)"
                                                 HWY_COMPILE_ONLY_STATIC)
    return()
  endif()
  # AVX3, AVX2, SSE4 and the scalar fallback ("floor"). Highway's other x86 targets only cost compile time and are
  # disabled: SSSE3 and, since Highway 1.0.4, SSE2 (bit 14) and the AVX3 variants (AVX3_ZEN4, AVX3_SPR and any future
  # ones: all bits below that of AVX3).
  set(disabled_targets HWY_SSSE3)
  if(NOT hwy_VERSION VERSION_LESS 1.0.4)
    set(disabled_targets "((HWY_AVX3-1)|HWY_SSSE3|(1LL<<14))")
  endif()
  target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=${disabled_targets}")
  if(MAKI_HOST_ONLY)
    maki_host_target(host)
    # No -march: as in the full build, only code between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE uses the target's
    # instructions, which is why both builds compute the same bits.
    target_compile_definitions(${target} PRIVATE HWY_COMPILE_ONLY_STATIC HWY_BASELINE_TARGETS=HWY_${host})
  endif()
endfunction()

# With CMAKE_UNITY_BUILD, sources of a folder are compiled together, at most 32 of them, which takes half of the time:
# most of it goes to the headers of libraries. Files that include themselves once per SIMD target stay alone.
function(maki_unity target)
  if(NOT CMAKE_UNITY_BUILD)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  foreach(source IN LISTS sources)
    get_filename_component(source ${source} ABSOLUTE)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${source})
    get_filename_component(folder ${path} DIRECTORY)
    string(MAKE_C_IDENTIFIER ${folder} group)
    set(per_target "")
    if(EXISTS ${source})
      file(STRINGS ${source} per_target REGEX "foreach_target")
    endif()
    if(per_target OR path MATCHES "^autograd/kernels/|/allocations\\.cpp$")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION TRUE)
    else()
      math(EXPR count_${group} "${count_${group}} + 1")
      math(EXPR part "${count_${group}} / 32")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group}_${part})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()

# One static library per folder: maki_library(<folder> [further sources…]) adds maki_<folder>, exported as maki::<folder>,
# of all .cpp files below the folder, except those below app/ and modules, which a program loads.
function(maki_library folder)
  set(target maki_${folder})
  # Relative, because a folder above the sources may have any name.
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cpp)
  list(FILTER sources EXCLUDE REGEX "^app/|_module\\.cpp$")
  add_library(${target} STATIC ${sources} ${ARGN})
  add_library(maki::${folder} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${folder})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  maki_compile_options(${target})
  maki_unity(${target})
endfunction()
