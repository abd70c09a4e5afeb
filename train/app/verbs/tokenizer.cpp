// maki tokenizer train CORPUS… --out FILE      maki tokenizer encode|decode TOKENIZER [FILE…]
// maki tokenizer inspect TOKENIZER
#include "train/app/verbs/tokenizer.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "data/io/file.h"
#include "data/io/number.h"
#include "data/io/printable.h"
#include "data/tokenizer/bpe_tokenizer.h"
#include "data/tokenizer/tokenizer_files.h"
#include "train/app/choose_checkpoint.h"
#include "train/run/checkpoint.h"
#include "train/run/run_directory.h"

namespace maki {
namespace {

struct TokenizerInspectFlags {
  std::string tokenizer;
  bool json = false;
};

struct Facts {
  std::string kind, normalize = "none", hash, rule;
  std::int64_t vocab_size = 0, merges = 0;
  std::vector<AddedToken> added;
  std::int32_t longest = 0;  // token
};

Facts facts_of(const Tokenizer& tokenizer) {
  Facts facts{.kind = tokenizer.kind(),
              .hash = tokenizer.hash(),
              .rule = {},
              .vocab_size = tokenizer.vocab_size(),
              .added = {}};
  facts.normalize = to_string(tokenizer.normalization());
  if (const BpeParts* const bpe = tokenizer.bpe_parts()) {
    facts.rule = bpe->rule;
    facts.merges = std::ssize(bpe->merges);
    facts.added = bpe->added;
  }
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!is_added(facts.added, id) && tokenizer.bytes(id).size() > tokenizer.bytes(facts.longest).size())
      facts.longest = id;
  }
  return facts;
}

// The bytes of a token as text, in which what is not UTF-8 is replaced.
std::string shown(const Tokenizer& tokenizer, std::int32_t id) { return escape_unprintable(tokenizer.bytes(id)); }

void print_json(const Tokenizer& tokenizer, const Facts& facts) {
  nlohmann::ordered_json special = nlohmann::ordered_json::object(), added = special;
  for (const AddedToken& token : facts.added) (token.special ? special : added)[shown(tokenizer, token.id)] = token.id;
  nlohmann::ordered_json out = {{"kind", facts.kind},
                                {"vocab_size", facts.vocab_size},
                                {"merges", facts.merges},
                                {"pre_tokenizer", facts.rule},
                                {"special", special},
                                {"added", added},
                                {"normalize", facts.normalize},
                                {"hash", facts.hash},
                                {"longest_token", shown(tokenizer, facts.longest)}};
  if (const auto end = tokenizer.end_of_text()) out["end_of_text"] = *end;
  if (tokenizer.ends().size() > 1) out["ends"] = tokenizer.ends();
  fmt::print("{}\n", out.dump(2));
}

int inspect_tokenizer(const TokenizerInspectFlags& o) {
  const auto tokenizer = open_tokenizer(o.tokenizer);
  const Facts facts = facts_of(*tokenizer);
  if (o.json) {
    print_json(*tokenizer, facts);
    return 0;
  }
  fmt::print("kind           {}\nvocabulary     {} tokens\n", facts.kind, with_separators(facts.vocab_size));
  if (!facts.rule.empty())
    fmt::print("merges         {}\npre-tokenizer  {}\n", with_separators(facts.merges), facts.rule);
  fmt::print("normalize      {}\n", facts.normalize);
  fmt::print("longest token  {} bytes: \"{}\"\n", tokenizer->bytes(facts.longest).size(),
             shown(*tokenizer, facts.longest));
  const std::vector<std::int32_t> ends = tokenizer->ends();
  for (const AddedToken& token : facts.added) {
    const bool end = std::ranges::find(ends, token.id) != ends.end();
    fmt::print("{:15}{} = {}{}{}\n", token.special ? "special" : "added", token.id, shown(*tokenizer, token.id),
               end ? ", the end of a text" : "", token.always ? ", found in every text" : "");
  }
  fmt::print("hash           {}\n", facts.hash);
  return 0;
}

void add_tokenizer_inspect(const Command& tokenizer) {
  const Command command = tokenizer.add_verb("inspect", "Show what a tokenizer consists of");
  const auto o = std::make_shared<TokenizerInspectFlags>();
  command.add_argument("TOKENIZER", o->tokenizer, "tokenizer file or directory, run directory, or .maki file")
      .require();
  command.add_flag("--json", o->json, "print the facts as JSON");
  command.set_action([o] { return inspect_tokenizer(*o); });
}

}  // namespace

std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& path) {
  if (path.ends_with(".maki") || (is_directory(path) && RunDirectory(path).exists())) {
    const ContainerReader file(choose_checkpoint(path, ""));
    return load_tokenizers(read_state(file)).target;
  }
  return read_tokenizer(path);
}

void add_tokenizer(const Command& maki) {
  const Command command =
      maki.add_verb("tokenizer", "Train a byte-level BPE tokenizer, encode, decode, or inspect a tokenizer");
  add_tokenizer_train(command);
  add_tokenizer_encode(command);
  add_tokenizer_decode(command);
  add_tokenizer_inspect(command);
}

}  // namespace maki
