# Finds all libraries that maki links. A missing one is an error that names its package in Debian and in Homebrew.

function(maki_missing name debian homebrew)
  set(command "On Debian or Ubuntu: apt-get install ${debian}")
  if(APPLE AND homebrew)
    set(command "With Homebrew: brew install ${homebrew}")
  elseif(APPLE)
    set(command "Homebrew has no package of it: install it from its source, or set MAKI_BUILD_TESTS to OFF")
  endif()
  message(FATAL_ERROR "maki needs ${name}, which was not found. ${command}")
endfunction()

# find_package() that reports a missing package. Usage: maki_find(<Name> <in Debian> <in Homebrew> [components...])
macro(maki_find name debian homebrew)
  find_package(${name} QUIET ${ARGN})
  if(NOT ${name}_FOUND)
    maki_missing(${name} "${debian}" "${homebrew}")
  endif()
endmacro()

# Finds a library through pkg-config and provides it as PkgConfig::<target>.
macro(maki_pkg_config target module debian homebrew)
  pkg_check_modules(${target} QUIET IMPORTED_TARGET ${module})
  if(NOT ${target}_FOUND)
    maki_missing(${module} ${debian} ${homebrew})
  endif()
endmacro()

if(APPLE)
  # Apple's clang has no OpenMP library, and does not look where Homebrew puts one.
  execute_process(COMMAND brew --prefix libomp OUTPUT_VARIABLE OpenMP_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  maki_find(OpenMP libomp-dev libomp COMPONENTS CXX)
else()
  maki_find(OpenMP g++ gcc COMPONENTS CXX)
endif()
maki_find(fmt libfmt-dev fmt)
maki_find(hwy libhwy-dev highway)
maki_find(cereal libcereal-dev cereal)
maki_find(CLI11 libcli11-dev cli11)
maki_find(tomlplusplus libtomlplusplus-dev tomlplusplus)
maki_find(nlohmann_json nlohmann-json3-dev nlohmann-json)
maki_find(Iconv libc6-dev libiconv)
maki_find(PkgConfig pkg-config pkgconf)
maki_pkg_config(xxhash libxxhash libxxhash-dev xxhash)
maki_pkg_config(utf8proc libutf8proc libutf8proc-dev utf8proc)
maki_pkg_config(pcre2 libpcre2-8 libpcre2-dev pcre2)
maki_pkg_config(microhttpd libmicrohttpd libmicrohttpd-dev libmicrohttpd)
if(MAKI_BUILD_TESTS)
  maki_find(Catch2 catch2 catch2)
  maki_find(rapidcheck librapidcheck-dev "") # https://github.com/emil-e/rapidcheck
endif()
if(MAKI_BUILD_BENCH)
  maki_find(benchmark libbenchmark-dev google-benchmark)
endif()
# Optional; on Debian or Ubuntu: libedit-dev.
pkg_check_modules(libedit QUIET IMPORTED_TARGET libedit)
# Optional, for training on several machines; on Debian or Ubuntu: libopenmpi-dev or libmpich-dev.
set(MPI_CXX_SKIP_MPICXX ON)
find_package(MPI QUIET COMPONENTS CXX)
# libFuzzer comes with clang.
if(MAKI_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "MAKI_BUILD_FUZZERS needs clang; the compiler is ${CMAKE_CXX_COMPILER_ID}. "
                        "Use the preset fuzz; on Debian or Ubuntu: apt-get install clang libomp-dev")
  endif()
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_FLAGS -fsanitize=fuzzer)
  check_cxx_source_compiles("extern \"C\" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }"
                            MAKI_HAVE_LIBFUZZER)
  unset(CMAKE_REQUIRED_FLAGS)
  if(NOT MAKI_HAVE_LIBFUZZER)
    maki_missing("libFuzzer of clang" "libclang-rt-${CMAKE_CXX_COMPILER_VERSION_MAJOR}-dev" llvm)
  endif()
endif()

# The libraries in C++ that a program for other C++ libraries than the system's compiles into itself: from their headers
# alone.
set(MAKI_FMT fmt::fmt)
set(MAKI_TOML tomlplusplus::tomlplusplus)
if(MAKI_PORTABLE OR MAKI_HEADERS_ALONE)
  set(MAKI_FMT fmt::fmt-header-only)
  add_library(maki_toml INTERFACE)
  target_compile_definitions(maki_toml INTERFACE TOML_HEADER_ONLY=1)
  set(MAKI_TOML $<BUILD_INTERFACE:maki_toml>)
endif()
if(MAKI_PORTABLE)
  # The C++ library of the system, which libhwy.so names, is not looked at: what both define would be kept, and parts of it
  # that nothing uses ask for a newer glibc.
  add_link_options(-static-libstdc++ -Wl,--gc-sections -Wl,--allow-shlib-undefined)
endif()
