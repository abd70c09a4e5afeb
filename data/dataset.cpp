#include "data/dataset.h"

#include <fmt/ranges.h>

#include "data/error.h"
#include "data/utf8.h"

namespace maki {

Dataset make_dataset(const Corpus& corpus, double val_fraction, std::int64_t block_size,
                     const std::string& tokenizer_kind, std::shared_ptr<const Tokenizer> tokenizer) {
  Dataset data;
  data.tokenizer =
      tokenizer ? std::move(tokenizer) : std::shared_ptr<const Tokenizer>(make_tokenizer(tokenizer_kind, corpus.text));
  data.corpus_hash = corpus.hash;
  data.characters = corpus.characters;
  const std::string_view text = corpus.text;
  const std::size_t split = split_offset(corpus, val_fraction);
  data.train = data.tokenizer->encode(text.substr(0, split));
  data.val = data.tokenizer->encode(text.substr(split));
  const auto require = [&](const char* side, const std::vector<std::int32_t>& tokens) {
    check<CorpusError>(
        static_cast<std::int64_t>(tokens.size()) >= block_size + 1,
        "{}: the {} text needs at least block_size + 1 = {} tokens; it has {} of {}; give more text, a smaller "
        "--block-size or another --val-fraction (0: no validation)",
        fmt::join(corpus.sources, " "), side, block_size + 1, tokens.size(), data.train.size() + data.val.size());
  };
  require("training", data.train);
  if (val_fraction > 0) require("validation", data.val);
  if (corpus.entropy_per_char) {
    const bool all = data.val.empty();
    const std::string_view judged = all ? text : text.substr(split);
    data.best_loss = *corpus.entropy_per_char * static_cast<double>(count_code_points(judged)) /
                     static_cast<double>(all ? data.train.size() : data.val.size());
  }
  return data;
}

}  // namespace maki
