# Installs maki into a fresh folder, builds the project in this folder against it, and runs it.
# cmake -DBUILD=<maki build folder> -DSOURCE=<this folder> -DWORK=<scratch folder> -DCOMPILER=<compiler>
#       -DARGUMENT=<of CXX="ccache g++": g++> -DFLAGS=<its flags> -P check.cmake
# The compiler must be the one that built maki, because two OpenMP runtimes must not be mixed.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
# Of a build that is not complete, nothing is installed.
file(READ "${BUILD}/cmake_install.cmake" rules)
string(REPLACE "public_headers.stamp" "not_built.stamp" rules "${rules}")
file(WRITE "${WORK}/cmake_install.cmake" "${rules}")
execute_process(COMMAND ${CMAKE_COMMAND} -DCMAKE_INSTALL_PREFIX=${WORK}/none -P ${WORK}/cmake_install.cmake
                RESULT_VARIABLE status ERROR_VARIABLE output OUTPUT_QUIET)
if(status EQUAL 0 OR NOT output MATCHES "not_built.stamp" OR EXISTS "${WORK}/none")
  message(FATAL_ERROR "an incomplete build was installed, or refused with: ${output}")
endif()
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix")
set(options -G Ninja "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_CXX_COMPILER=${COMPILER}"
    "-DCMAKE_CXX_COMPILER_ARG1=${ARGUMENT}" "-DCMAKE_CXX_FLAGS=${FLAGS}")
run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/build" ${options})
run(${CMAKE_COMMAND} --build "${WORK}/build")
run("${WORK}/build/uses_maki")
if(NOT output MATCHES "loss fell")
  message(FATAL_ERROR "uses_maki ran, but printed: ${output}")
endif()
message(STATUS "${output}")

# Without a library that maki needs, it is not found, and the project decides what follows.
file(WRITE "${WORK}/without/CMakeLists.txt" "cmake_minimum_required(VERSION 3.25)
project(without_maki LANGUAGES CXX)
find_package(maki QUIET)
message(STATUS \"\${maki_FOUND}: \${maki_NOT_FOUND_MESSAGE}\")\n")
run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH= "PKG_CONFIG_LIBDIR=${WORK}" ${CMAKE_COMMAND} -S "${WORK}/without"
    -B "${WORK}/without/build" ${options})
if(NOT output MATCHES "0: maki needs xxhash, which pkg-config did not find")
  message(FATAL_ERROR "find_package(maki QUIET) without libraries printed: ${output}")
endif()

# Every installed header compiles alone. Most are the first header of a source file of theirs, which compiled. The others
# are compiled here, and all together, with nothing but the prefix on the include path.
file(GLOB_RECURSE headers RELATIVE "${WORK}/prefix/include" "${WORK}/prefix/include/maki/*.h")
list(LENGTH headers count)
if(count LESS 60)
  message(FATAL_ERROR "only ${count} headers were installed")
endif()
separate_arguments(words UNIX_COMMAND "${ARGUMENT} ${FLAGS}")
set(compile ${COMPILER} ${words} -x c++ -std=c++20 -fsyntax-only -Wall -Werror -fopenmp -I ${WORK}/prefix/include)
set(all "")
foreach(header ${headers})
  string(APPEND all "#include <${header}>\n")
  string(REGEX REPLACE "^maki/(.*)\\.h$" "\\1" name "${header}")
  set(source "${SOURCE}/../../${name}.cpp")
  set(first "")
  if(EXISTS "${source}")
    file(STRINGS "${source}" includes REGEX "^#include" LIMIT_COUNT 1)
    list(GET includes 0 first)
  endif()
  if(NOT first STREQUAL "#include \"${name}.h\"")
    run(${compile} -include ${header} /dev/null)
  endif()
endforeach()
file(WRITE "${WORK}/all.cpp" "${all}")
run(${compile} "${WORK}/all.cpp")
message(STATUS "${count} headers compile alone")
