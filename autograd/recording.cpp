#include "autograd/recording.h"

#include <exception>
#include <utility>

#include "autograd/core/check.h"
#include "autograd/tape.h"

namespace maki {
namespace {

thread_local Tape* current_tape = nullptr;
thread_local const Observing* current_observing = nullptr;  // applies while current_tape is null
thread_local bool as_recorded = false;
thread_local Precision product_precision = Precision::float32;

}  // namespace

Recording::Recording(Tape& tape) : Recording(tape, {.step = tape.recordings_}) { ++tape.recordings_; }

Recording::Recording(Tape& tape, const RandomContext& random)
    : tape_(tape), previous_(current_tape), outer_random_(tape.random_), exceptions_(std::uncaught_exceptions()) {
  check(!tape.running_, "recording: the tape is running backward; record on another tape");
  check((tape.nodes_.empty() && tape.open_recordings_ == 0) || tape.precision_ == product_precision,
        "recording: the tape was begun with products in {}; got {}; record on another tape, or clear() it",
        to_string(tape.precision_), to_string(product_precision));
  if (tape.open_recordings_++ == 0 && tape.nodes_.empty()) tape.random_calls_ = 0;
  tape.precision_ = product_precision;
  current_tape = &tape;
  tape.random_ = random;
}

Recording::~Recording() {
  current_tape = previous_;
  tape_.random_ = outer_random_;
  --tape_.open_recordings_;
  if (std::uncaught_exceptions() > exceptions_) tape_.release();
}

Observing::Observing(Tape::Observer observer)
    : observer_(std::move(observer)),
      suspended_(std::exchange(current_tape, nullptr)),
      previous_(std::exchange(current_observing, this)) {}
Observing::~Observing() {
  current_observing = previous_;
  current_tape = suspended_;
}
void Observing::tell(const char* name, std::span<const Tensor* const> inputs, std::span<Tensor* const> outputs) {
  if (current_observing != nullptr) current_observing->observer_({name, false, 0, inputs, outputs});
}

AsRecorded::AsRecorded() : before_(std::exchange(as_recorded, true)) {}
AsRecorded::~AsRecorded() { as_recorded = before_; }

bool rounds_as_recorded() { return as_recorded || current_tape != nullptr; }

ProductPrecision::ProductPrecision(Precision precision) : before_(std::exchange(product_precision, precision)) {}
ProductPrecision::~ProductPrecision() { product_precision = before_; }
Precision ProductPrecision::current() { return product_precision; }

bool rounds_operands() { return rounds_as_recorded() && ProductPrecision::current() == Precision::bfloat16; }

Tape* Tape::current() { return current_tape; }

}  // namespace maki
