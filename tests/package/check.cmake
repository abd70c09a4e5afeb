# Installs maki into a fresh folder, builds the project in this folder against it, and runs it.
# cmake -DBUILD=<maki build folder> -DSOURCE=<this folder> -DWORK=<scratch folder> -DCOMPILER=<compiler> -P check.cmake
# The compiler must be the one that built maki, because two OpenMP runtimes must not be mixed.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN} failed:\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE "${WORK}")
run(${CMAKE_COMMAND} --install "${BUILD}" --prefix "${WORK}/prefix")
run(${CMAKE_COMMAND} -S "${SOURCE}" -B "${WORK}/build" -G Ninja "-DCMAKE_PREFIX_PATH=${WORK}/prefix" -DCMAKE_BUILD_TYPE=Release
    "-DCMAKE_CXX_COMPILER=${COMPILER}")
run(${CMAKE_COMMAND} --build "${WORK}/build")
run("${WORK}/build/uses_maki")
if(NOT output MATCHES "loss fell")
  message(FATAL_ERROR "uses_maki ran, but printed: ${output}")
endif()
message(STATUS "${output}")

# Every installed header compiles alone, with nothing but the prefix on the include path.
file(GLOB_RECURSE headers RELATIVE "${WORK}/prefix/include" "${WORK}/prefix/include/maki/*.h")
list(LENGTH headers count)
if(count LESS 60)
  message(FATAL_ERROR "only ${count} headers were installed")
endif()
list(JOIN headers "\n" lines)
file(WRITE "${WORK}/headers.txt" "${lines}\n")
run(sh -c "xargs -P 2 -I HEADER sh -c 'echo \"#include <HEADER>\" | \"$0\" -x c++ -std=c++20 -fsyntax-only -Wall -Werror -fopenmp -I \"$1\" -' '${COMPILER}' '${WORK}/prefix/include' < '${WORK}/headers.txt'")
message(STATUS "${count} headers compile alone")
