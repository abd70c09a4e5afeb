// maki attend RUN --prompt TEXT [options]: the attention weights of a trained model on a text.
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <optional>

#include "autograd/core/check.h"
#include "data/io/number.h"
#include "train/app/draw/attention_figure.h"
#include "train/app/progress.h"
#include "train/app/reading.h"
#include "train/app/report.h"
#include "train/app/verbs.h"
#include "train/app/verbs/drawing_options.h"
#include "train/loop/attention_maps.h"
#include "train/loop/translate.h"

namespace maki {
namespace {

struct AttendOptions {
  ReadingOptions reading;
  std::string prompt, kind, layer = "all", head = "all";
  std::optional<std::string> target;
  DrawingOptions drawing;
};

std::vector<std::int64_t> chosen_numbers(const char* name, const std::string& text, std::int64_t count) {
  std::vector<std::int64_t> numbers;
  if (text != "all") return {parse_integer(name, text, 0, static_cast<double>(count - 1))};
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

// What the model writes for this source, or the target that was given; none for weights that do not depend on it. At
// most 64 tokens, so that a text that does not end leaves the cells of the picture large enough to be seen.
std::vector<std::int32_t> target_of(const AttendOptions& o, const LoadedModel& loaded, const std::string& kind,
                                    const std::vector<std::int32_t>& source) {
  if (!depends_on_target(kind)) {
    check(!o.target,
          "attend: --target has no effect on the attention of the {}, which reads the prompt alone; omit it, or choose "
          "another --kind",
          kind);
    return {};
  }
  if (o.target) {
    const auto target = encode_line(*loaded.tokenizers.target, *o.target, "target", o.reading.policy());
    require_positions(loaded, "target", std::ssize(target), /*adds=*/1);
    return target;
  }
  check(!source.empty(), "attend: the prompt has no token; give a longer one");
  const TranslateOptions options{.max_tokens = std::min<std::int64_t>(64, loaded.state.config.block_size)};
  const std::vector<std::vector<std::int32_t>> sources = {source};
  const std::vector<Hypothesis> found = translate(loaded.generator(), sources, ends_of(loaded.tokenizers), options);
  to_stderr("translation: {}\n", translated_line(*loaded.tokenizers.target, found.front()));
  return found.front().ids;
}

AttentionMaps maps_of(const AttendOptions& o, const LoadedModel& loaded) {
  const std::vector<std::string> kinds = attention_kinds(loaded);
  if (kinds.size() == 1) {
    check(o.kind.empty() && !o.target,
          "attend: --kind and --target are for models that read one text and write another; {} is a model of kind {}",
          loaded.path, loaded.model->kind());
    const auto ids = encode_text(loaded, o.prompt, "prompt", o.reading.policy());
    require_positions(loaded, "prompt", std::ssize(ids));
    return attention_maps(loaded, ids);
  }
  const std::string kind = o.kind.empty() ? kinds.front() : o.kind;
  const auto source = encode_line(*loaded.tokenizers.source, o.prompt, "prompt", o.reading.policy());
  require_positions(loaded, "prompt", std::ssize(source), /*adds=*/1);
  return attention_maps(loaded, kind, source, target_of(o, loaded, kind, source));
}

std::string weights_json(const LoadedModel& loaded, const AttentionMaps& maps, const ChosenHeads& chosen) {
  FloatJson weights = FloatJson::array();
  const std::int64_t queries = std::ssize(maps.queries), keys = std::ssize(maps.keys);
  for (const std::int64_t layer : chosen.layers) {
    FloatJson heads = FloatJson::array();
    const Tensor& all = maps.layers[static_cast<std::size_t>(layer)];
    for (const std::int64_t head : chosen.heads)
      heads.push_back(rows_json(all.slice_flat(head * queries * keys, {queries, keys})));
    weights.push_back(std::move(heads));
  }
  const FloatJson facts{{"checkpoint", loaded.path}, {"step", loaded.state.step}, {"kind", maps.kind},
                        {"causal", maps.causal},     {"layers", chosen.layers},   {"heads", chosen.heads},
                        {"queries", maps.queries},   {"keys", maps.keys},         {"weights", weights}};
  return json_text(facts);
}

std::string csv_text(const AttentionMaps& maps, const ChosenHeads& chosen) {
  std::string text = "layer,head,query,key,query_token,key_token,weight\n";
  const std::int64_t queries = std::ssize(maps.queries), keys = std::ssize(maps.keys);
  const auto field = [](const std::string& token) { return csv_field(escape_unprintable(token)); };
  for (const std::int64_t layer : chosen.layers) {
    for (const std::int64_t head : chosen.heads) {
      const double* const from = attention_weights(maps, layer, head);
      for (std::int64_t t = 0; t < queries; ++t) {
        for (std::int64_t s = 0; s < (maps.causal ? t + 1 : keys); ++s)
          fmt::format_to(std::back_inserter(text), "{},{},{},{},{},{},{}\n", layer, head, t, s,
                         field(maps.queries[static_cast<std::size_t>(t)]),
                         field(maps.keys[static_cast<std::size_t>(s)]), static_cast<float>(from[t * keys + s]));
      }
    }
  }
  return text;
}

int attend(const AttendOptions& o) {
  check_drawing_options("attend", o.drawing);
  const LoadedModel loaded = o.reading.open();
  const ChosenHeads chosen{chosen_numbers("layer", o.layer, loaded.state.config.n_layer),
                           chosen_numbers("head", o.head, loaded.state.config.n_head)};
  const AttentionMaps maps = maps_of(o, loaded);
  const auto grid = [&] { return attention_grid(loaded, maps, chosen, words_of(o.drawing)); };
  print_drawing(
      o.drawing, o.reading.inputs(), [&] { return grid_picture(grid()); }, [&] { return grid_text(grid()); },
      [&] { return weights_json(loaded, maps, chosen); }, [&] { return csv_text(maps, chosen); });
  return 0;
}

}  // namespace

void add_attend(const Command& command) {
  const auto o = std::make_shared<AttendOptions>();
  o->reading.add_run(command, "run directory or .maki file");
  command
      .add_option("--prompt", o->prompt, "TEXT",
                  "text that the model reads; for a masked language model, [MASK] stands for one token")
      .require();
  command.add_option("--layer", o->layer, "N|all", "layer to draw, counted from 0 [all]");
  command.add_option("--head", o->head, "N|all", "head to draw, counted from 0 [all]");
  command.add_option("--kind", o->kind, "cross|encoder|decoder", "attention to draw, if the model translates [cross]");
  command.add_option("--target", o->target, "TEXT",
                     "translation whose attention is drawn, if the model translates [its own, by greedy search]");
  add_drawing_options(command, o->drawing);
  o->reading.add_options(command, "the texts");
  command.set_action([o] { return attend(*o); });
}

}  // namespace maki
