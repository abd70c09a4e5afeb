# Installs maki into a fresh folder, builds the project beside this file against it, and runs it.
# cmake -DBUILD=<maki build folder> -DSOURCE=<this folder> -DWORK=<scratch folder> -DCOMPILER=<what built maki: two
# runtimes of OpenMP do not mix> -P check.cmake
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
  message(FATAL_ERROR "uses_maki ran, but said: ${output}")
endif()
message(STATUS "${output}")
