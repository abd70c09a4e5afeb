// Reads a long range with all threads and processes it in order. Most of the time goes into memory that the operating
// system has to clear and fill, which two threads do twice as fast; a checksum, however, needs the bytes in order.
#pragma once

#include <cstdint>
#include <functional>

namespace maki {

/// Calls read(i) once for each piece i in [0, pieces), concurrently and in any order; and use(i) in the order 0, 1, 2,
/// …, never concurrently, on any thread and each after the return of read(i). If a call throws, further pieces are not
/// read, and the first exception is rethrown after all threads have stopped; until then, use() may still be called for
/// pieces that were read, unless it was use() that has thrown.
void read_in_parallel(std::int64_t pieces, const std::function<void(std::int64_t)>& read,
                      const std::function<void(std::int64_t)>& use);

}  // namespace maki
