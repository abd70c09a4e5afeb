// The built-in exercises for sequence-to-sequence models: small tasks with exact answers, as lines of "source, tab,
// target". Line i is a function of the exercise, its size and i alone.
//
// Thread safety: all functions may be called on several threads at once.
#pragma once

#include <cstdint>
#include <string>

namespace maki {

enum class Exercise : std::uint8_t {
  copy,               ///< letters → the same letters
  reverse,            ///< letters → the letters in reverse order
  addition,           ///< a+b → the sum, the most significant digit first
  addition_backwards  ///< a+b → the sum, the least significant digit first
};

/// Lines of an exercise: enough for thousands of steps of 32 lines before one is read again. Addition of one or two
/// digits has only 100 or 10,000, one per pair of numbers.
inline constexpr std::int64_t kMaxExerciseLines = 100'000;
/// The largest size of copy and reverse, in letters. Such an exercise has 50 MB.
inline constexpr std::int64_t kMaxLetters = 500;
/// The largest size of additions, in digits of each number. The pairs of such numbers can still be counted in 64 bits.
inline constexpr std::int64_t kMaxDigits = 9;

/// All lines, each with its newline. `size` is the largest number of letters, or of digits of each number. Letters are
/// a to z; lengths from 1 to `size` are equally frequent, and lines may repeat. Numbers are 0 to 10^size − 1, without
/// leading zeros; no pair (a, b) occurs twice. Throws Error unless size is between 1 and kMaxLetters or kMaxDigits.
std::string make_exercise(Exercise exercise, std::int64_t size);

}  // namespace maki
