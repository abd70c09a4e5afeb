# Copies public headers to where users find them. Inside the sources a header includes another one by its path from the
# root ("autograd/tensor.h"); users include it below maki/ (<maki/autograd/tensor.h>), so that is what the copies do.
# cmake -DSOURCE=<root> -DDESTINATION=<folder> "-DHEADERS=<header>|…" -P public_headers.cmake
string(REPLACE "|" ";" HEADERS "${HEADERS}")
foreach(header IN LISTS HEADERS)
  file(READ "${SOURCE}/${header}" text)
  string(REGEX REPLACE "#include \"(autograd|nn|optim|data|train)/" "#include \"maki/\\1/" text "${text}")
  set(copy "${DESTINATION}/${header}")
  if(EXISTS "${copy}")
    file(READ "${copy}" existing)
  endif()
  if(NOT EXISTS "${copy}" OR NOT "${existing}" STREQUAL "${text}")
    file(WRITE "${copy}" "${text}")
  endif()
endforeach()
