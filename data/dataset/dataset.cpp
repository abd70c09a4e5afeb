#include "data/dataset/dataset.h"

#include <algorithm>
#include <fmt/ranges.h>

#include "data/dataset/foreign_tokens.h"
#include "data/dataset/token_shards.h"
#include "data/io/error.h"
#include "data/io/number.h"
#include "data/io/utf8.h"
#include "data/tokenizer/special_text.h"

namespace maki {

std::int64_t count_code_points(const std::vector<std::string_view>& pieces) {
  std::int64_t count = 0;
  for (const std::string_view piece : pieces) count += count_code_points(piece);
  return count;
}

Tokens encode_pieces(const Tokenizer& tokenizer, const std::vector<std::string_view>& pieces, PieceKind kind) {
  Tokens tokens(tokenizer.vocab_size());
  const std::optional<std::int32_t> end =
      kind == PieceKind::document ? tokenizer.end_of_text() : std::optional<std::int32_t>();
  std::size_t bound = end ? pieces.size() : 0;
  for (const std::string_view piece : pieces) bound += tokenizer.token_bound(piece);
  tokens.reserve(bound);
  std::size_t encoded = 0;
  tokenizer.encode_texts(pieces, tokens, [&] {
    ++encoded;
    if (end) {
      tokens.append(std::span(&*end, 1));
    } else if (encoded < pieces.size()) {
      tokens.begin_piece();
    }
  });
  return tokens;
}

namespace {

void require_windows(const Corpus& corpus, const Dataset& data, double val_fraction, std::int64_t block_size) {
  const std::size_t all = data.train.size() + data.val.size();
  const auto require = [&](const char* side, const Tokens& tokens) {
    check<CorpusError>(
        !tokens.empty() || corpus.documents.size() != 1,
        "{}: is one document, and documents are kept whole, so no {} text is left; name more files, or the "
        "`document_separator` that this one has, or use `val_fraction` 0",
        fmt::join(corpus.sources, " "), side);
    // No block is smaller than one of 1, which is also what documents of any length need.
    const bool smaller = block_size > 1;
    std::vector<std::string> advice = {"more text"};
    if (smaller) advice.emplace_back("a model of a smaller `block_size`");
    if (val_fraction > 0) advice.emplace_back("another `val_fraction` (0: no validation)");
    check<CorpusError>(static_cast<std::int64_t>(tokens.size()) >= block_size + 1,
                       "{}: the {} text must have at least {}{}; it has {}{}{}; use {}", fmt::join(corpus.sources, " "),
                       side, smaller ? "block_size + 1 = " : "", pluralize(block_size + 1, "token"), tokens.size(),
                       tokens.size() < all ? fmt::format(" of {} in total", all) : "",
                       corpus.documents.empty() ? "" : ", because documents are kept whole",
                       fmt::join(advice, ", or "));
  };
  require("training", data.train);
  if (val_fraction > 0) require("validation", data.val);
}

// A tokenizer that encodes a text as the tokenizer of the tokens did, so that a run on them can continue with the text
// itself, and whose use() is that of the model.
std::shared_ptr<const Tokenizer> tokenizer_of_both(const Tokenizer& tokens, std::shared_ptr<const Tokenizer> model) {
  if (model->encodes_like(tokens)) return model;
  std::unique_ptr<Tokenizer> both = load_tokenizer(tokens.save());
  both->set_use(model->use());
  return both;
}

}  // namespace

std::optional<Corpus> prepared_corpus(const std::vector<std::string>& sources) {
  const auto paths = token_file_paths(sources);
  if (!paths) return std::nullopt;
  const auto foreign = foreign_token_paths(*paths);
  std::shared_ptr<const TokenFile> file = foreign ? open_foreign_tokens(*foreign) : open_token_files(*paths);
  Corpus corpus;
  if (foreign) corpus.notes = foreign->notes;
  corpus.sources = sources;
  corpus.files = {file->path};
  corpus.hash = file->facts.corpus_hash;
  corpus.characters = file->facts.characters;
  corpus.prepared = std::move(file);
  return corpus;
}

Dataset share_tokens(const Corpus& corpus, double val_fraction, std::shared_ptr<const Tokenizer> tokenizer) {
  std::shared_ptr<const TokenFile> file = corpus.prepared;
  if (file->tokenizer == nullptr) {
    check<CorpusError>(tokenizer != nullptr,
                       "{}: contains token ids, but not what they mean; name the tokenizer that made them with "
                       "`tokenizer_file`",
                       file->path);
    file = with_tokenizer(*file, tokenizer, val_fraction);
  } else {
    if (tokenizer == nullptr) tokenizer = file->tokenizer;
    check<CorpusError>(same_ids(*tokenizer, *file->tokenizer),
                       "{}: was prepared with the tokenizer {}, but the model has the tokenizer {}; prepare the text "
                       "with the model's tokenizer as `tokenizer_file`",
                       file->path, file->tokenizer->hash(), tokenizer->hash());
    tokenizer = tokenizer_of_both(*file->tokenizer, std::move(tokenizer));
  }
  const TokenFileFacts& facts = file->facts;
  return {.tokenizer = std::move(tokenizer),
          .train = Tokens(file->train, file),
          .val = Tokens(file->val, file),
          .corpus_hash = facts.corpus_hash,
          .characters = facts.characters,
          .documents = facts.documents,
          .best_possible_loss = facts.best_possible_loss,
          .prepared = file};
}

Dataset make_dataset(const Corpus& corpus, double val_fraction, std::int64_t block_size,
                     const std::string& tokenizer_kind, std::shared_ptr<const Tokenizer> tokenizer,
                     const TokenizerOptions& tokenizer_options) {
  if (corpus.prepared) {
    const TokenFile& file = *corpus.prepared;
    check<CorpusError>(file.tokenizer == nullptr || val_fraction == file.facts.val_fraction,
                       "{}: was prepared with `val_fraction` {}; got {}; omit the option, or prepare the text again",
                       file.path, file.facts.val_fraction, val_fraction);
    Dataset data = share_tokens(corpus, val_fraction, std::move(tokenizer));
    require_windows(corpus, data, val_fraction, block_size);
    return data;
  }
  Dataset data;
  if (tokenizer) {
    const auto unknown = tokenizer->unknown(corpus.text);
    check<CorpusError>(unknown.empty(), "{}", unknown_sentence(tokenizer->vocab_size(), unknown));
  }
  const SplitText split =
      split_text(corpus, val_fraction, tokenizer ? tokenizer->normalization() : tokenizer_options.normalization);
  data.tokenizer = tokenizer ? std::move(tokenizer)
                             : std::shared_ptr<const Tokenizer>(
                                   make_tokenizer(tokenizer_kind, {split.train, split.val}, tokenizer_options));
  data.corpus_hash = corpus.hash;
  data.characters = corpus.characters;
  data.documents = std::ssize(corpus.documents);
  data.train = encode_pieces(*data.tokenizer, split.train, piece_kind(corpus));
  data.val = encode_pieces(*data.tokenizer, split.val, piece_kind(corpus));
  require_windows(corpus, data, val_fraction, block_size);
  if (corpus.entropy_per_char) {
    const bool all = data.val.empty();
    data.best_possible_loss = *corpus.entropy_per_char *
                              static_cast<double>(count_code_points(all ? split.train : split.val)) /
                              static_cast<double>(all ? data.train.size() : data.val.size());
  }
  return data;
}

}  // namespace maki
