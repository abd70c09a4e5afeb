#include "data/builtin/exercises.h"

#include <algorithm>

#include "autograd/core/check.h"
#include "autograd/core/philox.h"
#include "data/dataset/sequence_order.h"

namespace maki {
namespace {

constexpr std::uint64_t kExerciseSeed = 0x6d616b69;  // "maki" in ASCII; another seed would change the exercises

// The stream's 2 follows 0 and 1, which are those of the stories in two languages (make_stories()). Copy and reverse
// have the same letters.
std::string letters_line(std::int64_t line, std::int64_t size, bool reverse) {
  const RandomStream stream(kExerciseSeed, RandomPurpose::stories, 2, static_cast<std::uint64_t>(line));
  std::string letters(1 + stream.below(0, static_cast<std::uint64_t>(size)), ' ');
  std::uint64_t i = 0;
  for (char& letter : letters) letter = static_cast<char>('a' + stream.below(++i, 26));
  const std::string answer = reverse ? std::string(letters.rbegin(), letters.rend()) : letters;
  return letters + '\t' + answer + '\n';
}

std::string addition_line(std::int64_t pair, std::int64_t numbers, bool backwards) {
  const std::int64_t a = pair / numbers, b = pair % numbers;
  std::string sum = std::to_string(a + b);
  if (backwards) std::ranges::reverse(sum);
  return fmt::format("{}+{}\t{}\n", a, b, sum);
}

}  // namespace

std::string make_exercise(Exercise exercise, std::int64_t size) {
  std::string text;
  if (exercise == Exercise::copy || exercise == Exercise::reverse) {
    check(size >= 1 && size <= kMaxLetters, "exercise: the number of letters must be between 1 and {}; got {}",
          kMaxLetters, size);
    for (std::int64_t i = 0; i < kMaxExerciseLines; ++i) text += letters_line(i, size, exercise == Exercise::reverse);
    return text;
  }
  check(size >= 1 && size <= kMaxDigits, "exercise: the number of digits must be between 1 and {}; got {}", kMaxDigits,
        size);
  std::int64_t numbers = 1;
  for (std::int64_t i = 0; i < size; ++i) numbers *= 10;
  const std::int64_t pairs = numbers * numbers;
  for (std::int64_t i = 0; i < std::min(kMaxExerciseLines, pairs); ++i)
    text += addition_line(feistel(i, pairs, kExerciseSeed, 0), numbers, exercise == Exercise::addition_backwards);
  return text;
}

}  // namespace maki
