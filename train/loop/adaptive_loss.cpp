#include "train/loop/adaptive_loss.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <memory>

#include "data/io/number.h"
#include "data/mixing/context_mixer.h"

namespace maki {
namespace {

// Reading a token takes a few microseconds, so this many take half a minute.
constexpr std::int64_t kMaxCountedTokens = std::int64_t{4} << 20;

// A mixer that has read the end of the training text; null once `stop` is requested.
std::unique_ptr<ContextMixer> count_training_text(const Dataset& data, const StopRequest& stop) {
  constexpr std::size_t kTokensBetweenStopChecks = 1 << 14;  // a tenth of a second, after which a signal is noticed
  const TokenSpan train = data.train, val = data.val;
  const auto all = static_cast<std::int64_t>(train.size());
  const std::int64_t first = std::max<std::int64_t>(0, all - kMaxCountedTokens);
  const std::vector<std::int32_t> ids = train.ids(static_cast<std::size_t>(first));
  const std::int64_t expected = all - first + static_cast<std::int64_t>(val.size());
  auto mixer =
      std::make_unique<ContextMixer>(*data.tokenizer, token_counts(ids, data.tokenizer->vocab_size()), expected);
  auto join = std::ranges::lower_bound(train.joins(), first);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i % kTokensBetweenStopChecks == 0 && stop.requested()) return nullptr;
    if (join != train.joins().end() && *join == first + static_cast<std::int64_t>(i)) {
      mixer->begin_text();
      ++join;
    }
    mixer->read(ids[i]);
  }
  return mixer;
}

}  // namespace

std::optional<AdaptiveLoss> adaptive_loss(const LoadedModel& loaded, const Dataset& data,
                                          const AdaptiveOptions& options, const StopRequest& stop) {
  OnlineLearner network(loaded, options.network);
  const std::unique_ptr<ContextMixer> mixer = options.counts ? count_training_text(data, stop) : nullptr;
  double network_sum = 0;
  MixedLoss sums;
  std::int64_t targets = 0;
  std::vector<float> probabilities;
  const auto read = [&](const Prediction& p) {
    if (p.begins) {
      if (mixer) mixer->begin_text();
      if (mixer) mixer->read(p.token);
      return;
    }
    ++targets;
    network_sum -= p.log_probabilities[static_cast<std::size_t>(p.token)];
    if (!mixer) return;
    probabilities.resize(p.log_probabilities.size());
    std::ranges::transform(p.log_probabilities, probabilities.begin(), [](float x) { return std::exp(x); });
    const MixedLoss loss = mixer->read(p.token, probabilities);
    sums.counts += loss.counts;
    sums.mixed += loss.mixed;
  };
  network.read(data.val, read, stop);
  if (stop.requested()) return std::nullopt;
  const double n = static_cast<double>(std::max<std::int64_t>(1, targets));
  AdaptiveLoss loss{.network = network_sum / n, .counts = {}, .mixed = {}};
  if (mixer) loss.counts = sums.counts / n;
  if (mixer) loss.mixed = sums.mixed / n;
  loss.targets = targets;
  loss.windows = network.windows();
  loss.window = network.window();
  return loss;
}

std::vector<ReportLine> measure_adapting(const AdaptiveLoss& loss, const AdaptiveOptions& options, bool own,
                                         double tokens_per_character) {
  Facts facts{{"window", loss.window},
              {"learning_rate", options.network.learning_rate},
              {"decay", options.network.decay},
              {"targets", loss.targets},
              {"windows", loss.windows}};
  std::vector<ReportLine> list;
  const auto report = [&](const char* label, const char* key, double nats, const std::string& what) {
    const double per_character = nats * tokens_per_character;
    facts.emplace_back(key, Facts{{"loss", nats}, {"nats_per_character", per_character}});
    list.push_back({label, fmt::format("{:.4f} nats per token, {:.4f} per character: {}", nats, per_character, what)});
  };
  report("adapting", "network", loss.network,
         fmt::format("the network, which learned from each window of {} after predicting it",
                     pluralize(loss.window, "token")));
  if (loss.counts) {
    report("counts", "counts", *loss.counts,
           own ? "counts of the training text and of what was read before" : "counts of what was read before");
    report("mixed", "mixed", *loss.mixed, "the network mixed with the counts");
  }
  list.push_back({"", "", {{"adapted", facts}}});
  return list;
}

}  // namespace maki
