#include "train/app/failure.h"

#include <csignal>
#include <fmt/format.h>
#include <new>
#include <system_error>

#include "autograd/core/check.h"
#include "autograd/core/storage.h"
#include "data/io/error.h"
#include "data/io/utf8.h"
#include "nn/generate/sampler.h"
#include "train/app/spelling.h"
#include "train/loop/team/team.h"

namespace maki {
namespace {

// Without its middle, if a text was given where a path belongs: it would fill the screen. The end says what to do.
std::string fitting(const std::string& sentence) {
  constexpr std::size_t kMostBytes = 2000, kEndBytes = 500;
  if (sentence.size() <= kMostBytes) return sentence;
  std::size_t end = sentence.size() - kEndBytes;
  while (end < sentence.size() && is_continuation(sentence[end])) ++end;
  return truncate_for_message(sentence, kEndBytes) + " …" + sentence.substr(end);
}

Failure failure(int exit_code, const std::string& sentence) { return {exit_code, fitting(spelled(sentence))}; }

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const CorpusError& error) {
    return failure(exit_code::kCorpus, error.what());
  } catch (const CheckpointError& error) {
    return failure(exit_code::kCheckpoint, error.what());
  } catch (const BadLogitsError& error) {  // from a model that was loaded from a file
    return failure(exit_code::kCheckpoint, error.what());
  } catch (const DivergedError& error) {
    return failure(exit_code::kDiverged, error.what());
  } catch (const RankError& error) {
    return failure(error.exit_code, error.what());
  } catch (const OutOfMemoryError& error) {
    return failure(exit_code::kUsage, fmt::format("{}; use a smaller model, batch or text", error.what()));
  } catch (const Error& error) {
    return failure(exit_code::kUsage, error.what());
  } catch (const std::system_error& error) {
    // Thrown where results are written to stdout. A reader that closes the pipe early, such as head, is not an error.
    if (error.code() == std::errc::broken_pipe) return {128 + SIGPIPE, ""};
    return failure(exit_code::kCheckpoint, fmt::format("cannot write to standard output: {}", error.code().message()));
  } catch (const std::bad_alloc&) {
    return failure(exit_code::kUsage, "out of memory; use a smaller model, batch or text");
  } catch (const std::exception& error) {
    return failure(exit_code::kDefect, fmt::format("internal error, which is a bug in maki: {}", error.what()));
  }
}

}  // namespace maki
