// The sequences of documents against a loop that is written from their contract, and the batches of these sequences.
#include "data/dataset/document_sequences.h"

#include <map>
#include <rapidcheck.h>
#include <set>

#include "data/dataset/window_batches.h"
#include "tests/catch.h"
#include "tests/data/require_refused.h"

using namespace maki;
using namespace maki::tests;

namespace {

constexpr std::int32_t kEnd = 0;  // ends a document

// Documents as the tokens of a text, in one piece with an end after each of them, or in one piece per document.
struct Text {
  std::vector<std::int32_t> ids;
  std::vector<std::int64_t> joins;
  std::vector<int> document_of;  // of each token; an end belongs to the document that it closes

  Text(const std::vector<std::vector<std::int32_t>>& documents, bool ends) {
    for (std::size_t d = 0; d < documents.size(); ++d) {
      if (!ends && !ids.empty() && !documents[d].empty()) joins.push_back(std::ssize(ids));
      ids.insert(ids.end(), documents[d].begin(), documents[d].end());
      if (ends) ids.push_back(kEnd);
      document_of.resize(ids.size(), static_cast<int>(d));
    }
  }
  TokenSpan span() const { return TokenSpan(TokenSpan::Ids<std::int32_t>(ids), joins); }
};

std::vector<std::vector<std::int32_t>> random_documents() {
  const auto id = rc::gen::inRange(1, 1000);
  return *rc::gen::nonEmpty(rc::gen::container<std::vector<std::vector<std::int32_t>>>(
      rc::gen::scale(0.2, rc::gen::container<std::vector<std::int32_t>>(id))));
}

std::vector<DocumentSequences::Sequence> all(const DocumentSequences& sequences) {
  std::vector<DocumentSequences::Sequence> list;
  for (std::int64_t i = 0; i < sequences.count(); ++i) list.push_back(sequences[i]);
  return list;
}

}  // namespace

TEST_CASE("a document begins with the end of the one before and is cut from its beginning") {
  //                                      0  1  2  3     4  5  6  7  8     9  10
  const std::vector<std::int32_t> tokens{11, 12, 13, kEnd, 21, 22, 23, 24, kEnd, 31, kEnd};
  const DocumentSequences sequences(tokens, kEnd, 3);
  const auto list = all(sequences);
  REQUIRE(list.size() == 4);
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{{0, 3}, {3, 3}, {6, 2}, {8, 2}};
  for (std::size_t i = 0; i < list.size(); ++i) {
    REQUIRE(list[i].start == expected[i].first);
    REQUIRE(list[i].length == expected[i].second);
    REQUIRE(list[i].known == 0);
  }
  REQUIRE(sequences.targets() == 10);  // all but the first token
  REQUIRE(sequences.filling() == 1 - 10.0 / 12);
}

TEST_CASE("the ends of documents in a long text are found wherever they are") {
  constexpr std::int64_t kTokens = 10'000;  // ends are looked for in 4,096 tokens at a time, from the second token on
  for (const std::vector<std::int64_t>& ends :
       {std::vector<std::int64_t>{4096, 4097, 8192, 8193, 9998}, {4095, 8191}, {5000}}) {
    std::vector<std::int32_t> tokens(kTokens, 1);
    for (const std::int64_t end : ends) tokens[static_cast<std::size_t>(end)] = kEnd;
    const DocumentSequences sequences(tokens, kEnd, kTokens);
    REQUIRE(sequences.count() == std::ssize(ends) + 1);
    for (std::int64_t i = 0; i < sequences.count(); ++i) {
      const std::int64_t begin = i == 0 ? 0 : ends[static_cast<std::size_t>(i - 1)];
      const std::int64_t next = i < std::ssize(ends) ? ends[static_cast<std::size_t>(i)] : kTokens - 1;
      REQUIRE((sequences[i].start == begin && sequences[i].length == next - begin));
    }
  }
}

TEST_CASE("without an end of text, documents are pieces, and an end in front of the first one is its beginning") {
  const std::vector<std::int32_t> tokens{kEnd, 1, 2, 3, 4, 5, 6};
  const std::vector<std::int64_t> joins{3, 4};
  const DocumentSequences pieces(TokenSpan(TokenSpan::Ids<std::int32_t>(tokens), joins), std::nullopt, 8);
  REQUIRE(pieces.count() == 2);  // the document of one token has no target
  REQUIRE((pieces[0].start == 0 && pieces[0].length == 2));
  REQUIRE((pieces[1].start == 4 && pieces[1].length == 2));
  const DocumentSequences one(tokens, kEnd, 8);  // as llm.c writes documents
  REQUIRE(one.count() == 1);
  REQUIRE((one[0].start == 0 && one[0].length == 6));
}

TEST_CASE("sequences of documents have every target once, and none of another document") {
  REQUIRE(rc::check([] {
    const bool ends = *rc::gen::arbitrary<bool>();
    const Text text(random_documents(), ends);
    const std::int64_t block = *rc::gen::inRange(1, 7), stride = *rc::gen::inRange(0, static_cast<int>(block) + 1);
    std::set<std::int64_t> wanted;
    for (std::int64_t i = 1; i < std::ssize(text.ids); ++i) {
      if (std::ranges::find(text.joins, i) == text.joins.end()) wanted.insert(i);
    }
    RC_PRE(!wanted.empty());
    const DocumentSequences sequences(text.span(), ends ? std::optional(kEnd) : std::nullopt, block, stride);
    RC_ASSERT(sequences.targets() == std::ssize(wanted));
    std::int64_t before = -1;
    for (const DocumentSequences::Sequence& s : all(sequences)) {
      RC_ASSERT((s.length >= 1 && s.length <= block && s.known >= 0 && s.known < s.length && s.start > before));
      before = s.start;
      const int document = text.document_of.at(static_cast<std::size_t>(s.start + 1));
      for (std::int64_t t = 0; t < s.length; ++t) {
        // The input is of this document or the end that closes the one before; that only as the first one.
        const auto input = static_cast<std::size_t>(s.start + t);
        RC_ASSERT((text.document_of.at(input) == document || (t == 0 && text.ids.at(input) == kEnd)));
        RC_ASSERT(text.document_of.at(input + 1) == document);
        if (t >= s.known) RC_ASSERT(wanted.erase(s.start + t + 1) == 1U);
      }
      // With overlap, a target has at least block − stride tokens of its document before it, if there are as many.
      if (s.known > 0) RC_ASSERT(s.known == block - stride);
    }
    RC_ASSERT(wanted.empty());
  }));
}

TEST_CASE("training batches of documents read every sequence once per epoch, in an order of seed and epoch") {
  REQUIRE(rc::check([] {
    const Text text(random_documents(), /*ends=*/true);
    RC_PRE(text.ids.size() >= 2U);
    constexpr std::int64_t kBlock = 4, kRows = 2, kAccum = 2;
    const auto sequences = std::make_shared<const DocumentSequences>(text.span(), kEnd, kBlock);
    const TrainBatches batches(text.span(), kRows, kBlock, kAccum, 5, RowOrder::shuffled, sequences);
    std::map<std::vector<std::int32_t>, int> rows, expected;
    const std::int64_t epochs = kRows * kAccum, steps = sequences->count();  // so that they end with a step
    std::int64_t read = 0;
    for (std::int64_t step = 0; step < steps; ++step) {
      RC_ASSERT(batches.tokens_before(step) == read);
      std::int64_t targets = 0;
      for (std::int64_t micro = 0; micro < kAccum; ++micro) {
        std::vector<std::int32_t> ids(kRows * kBlock, -7), next(ids);
        targets += batches.fill(step, micro, ids, next);
        for (std::int64_t row = 0; row < kRows; ++row) {
          std::vector<std::int32_t> both(ids.begin() + row * kBlock, ids.begin() + (row + 1) * kBlock);
          both.insert(both.end(), next.begin() + row * kBlock, next.begin() + (row + 1) * kBlock);
          ++rows[both];
        }
      }
      RC_ASSERT((batches.targets(step) == targets && batches.tokens_in_step(step) == targets));
      read += targets;
    }
    RC_ASSERT(read == epochs * sequences->targets());
    RC_ASSERT(batches.epochs(steps) == static_cast<double>(epochs));
    for (const DocumentSequences::Sequence& s : all(*sequences)) {
      std::vector<std::int32_t> both(2 * kBlock, 0);
      std::fill(both.begin() + kBlock, both.end(), kIgnoredTarget);
      for (std::int64_t t = 0; t < s.length; ++t) {
        both[static_cast<std::size_t>(t)] = text.ids.at(static_cast<std::size_t>(s.start + t));
        both[static_cast<std::size_t>(kBlock + t)] = text.ids.at(static_cast<std::size_t>(s.start + t + 1));
      }
      expected[both] += static_cast<int>(epochs);
    }
    RC_ASSERT(rows == expected);
  }));
}

TEST_CASE("epochs of documents have different orders") {
  std::vector<std::int32_t> tokens;
  for (std::int32_t i = 0; i < 200; ++i) tokens.push_back(i % 5 == 4 ? kEnd : i + 1);
  const auto sequences = std::make_shared<const DocumentSequences>(tokens, kEnd, 5);
  const TrainBatches batches(tokens, 1, 5, 1, 5, RowOrder::shuffled, sequences);
  const TrainBatches other(tokens, 1, 5, 1, 6, RowOrder::shuffled, sequences);
  int same_epoch = 0, same_seed = 0;
  for (std::int64_t i = 0; i < sequences->count(); ++i) {
    same_epoch += batches.start(i, 0, 0) == batches.start(sequences->count() + i, 0, 0) ? 1 : 0;
    same_seed += batches.start(i, 0, 0) == other.start(i, 0, 0) ? 1 : 0;
  }
  REQUIRE(same_epoch < 8);
  REQUIRE(same_seed < 8);
}

TEST_CASE("evaluation of documents has the targets of the whole text") {
  REQUIRE(rc::check([] {
    const bool ends = *rc::gen::arbitrary<bool>();
    const Text text(random_documents(), ends);
    const std::int64_t block = *rc::gen::inRange(1, 7), stride = *rc::gen::inRange(0, static_cast<int>(block) + 1);
    RC_PRE(std::ssize(text.ids) - std::ssize(text.joins) >= 2);
    const std::optional<std::int32_t> end = ends ? std::optional(kEnd) : std::nullopt;
    const auto sequences = std::make_shared<const DocumentSequences>(text.span(), end, block, stride);
    const EvalBatches batches(text.span(), 3, block, RowOrder::shuffled, stride, sequences);
    RC_ASSERT(batches.targets() == sequences->targets());
    std::int64_t found = 0, row = 0;
    for (std::int64_t i = 0; i < batches.count(); ++i) {
      const auto size = static_cast<std::size_t>(batches.rows(i) * block);
      std::vector<std::int32_t> ids(size, -7), targets(ids);
      const std::int64_t counted = batches.fill(i, ids, targets);
      RC_ASSERT(counted == std::ssize(targets) - std::ranges::count(targets, kIgnoredTarget));
      found += counted;
      for (std::int64_t r = 0; r < batches.rows(i); ++r, ++row) {
        const DocumentSequences::Sequence s = (*sequences)[row];
        RC_ASSERT(batches.start(i, r) == s.start);
        for (std::int64_t t = 0; t < block; ++t) {
          const auto at = static_cast<std::size_t>(r * block + t), from = static_cast<std::size_t>(s.start + t);
          RC_ASSERT(ids[at] == (t < s.length ? text.ids.at(from) : 0));
          RC_ASSERT(targets[at] == (t < s.length && t >= s.known ? text.ids.at(from + 1) : kIgnoredTarget));
        }
      }
    }
    RC_ASSERT((found == sequences->targets() && row == sequences->count()));
  }));
}

TEST_CASE("documents without targets are refused") {
  const std::vector<std::int32_t> tokens{1, 2};
  const std::vector<std::int64_t> joins{1};
  require_refused([&] { DocumentSequences(TokenSpan(TokenSpan::Ids<std::int32_t>(tokens), joins), kEnd, 4); },
                  {"documents: at least one must have two or more tokens; use longer ones"});
  REQUIRE_THROWS_WITH(DocumentSequences(tokens, kEnd, 4, 5),
                      "documents: the stride must be in [0, 4], and block_size at least 1; got 5 and 4");
  const auto sequences = std::make_shared<const DocumentSequences>(tokens, kEnd, 4);
  REQUIRE_THROWS_WITH(TrainBatches(tokens, 1, 3, 1, 1, RowOrder::shuffled, sequences),
                      "batches: the sequences of documents are shuffled and have at most block_size = 3 tokens; got 4");
  REQUIRE_THROWS_WITH(EvalBatches(tokens, 1, 4, RowOrder::continued, 0, sequences),
                      "batches: the sequences of documents are shuffled and have at most block_size = 4 tokens; got 4");
}
