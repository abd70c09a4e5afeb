// Reading the corpus of a run, at its start and again when the run is resumed or evaluated.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/text/corpus.h"
#include "data/tokenizer/tokenizer.h"
#include "train/app/flags.h"
#include "train/run/config/config.h"

namespace maki {

/// Adds CORPUS.
Option add_corpus_argument(const Command& command, std::vector<std::string>& sources);
/// The options for reading the files of a run's corpus, from the fields of its configuration.
CorpusOptions corpus_options(const Config& config);

/// The configuration in a run directory, which names the corpus of the run; nullopt if there is none, as beside a .maki
/// file. Throws what RunDirectory::apply_config() throws.
std::optional<Config> stored_config(const std::string& run);

/// The fields that say how text is read: encoding, documents, and what of a directory.
const std::vector<std::string>& reading_fields();
/// Reads config.corpus as the text of a run was read: copies from the configuration that the run directory stores, if
/// there is one, the reading fields that have an effect on this corpus and are not among `given`, which a user has set.
/// A given field of documents stands for all of them. Says on stderr what was copied. Throws what
/// RunDirectory::apply_config() throws.
void adopt_reading_fields(const std::string& run, const std::vector<std::string>& given, Config& config);
/// Says what to type if a source is standard input and that is a terminal.
void ask_for_text(const std::vector<std::string>& sources);

/// The text of a file for a model of `run` to continue: its bytes, or if they are not UTF-8, but the run stores the
/// encoding of its text, decoded from that. Throws CorpusError if the file cannot be read or decoded.
std::string read_prompt_file(const std::string& path, const std::string& run);

/// prepared_corpus() of data/dataset/dataset.h, with its notes on stderr.
std::optional<Corpus> read_prepared(const std::vector<std::string>& sources);
/// What `maki prepare` or nanoGPT left beside the token files of another program that a source denotes
/// (kOwnTokenizerFile, kNanoGptMetaFile): the tokenizer that made them, or null.
std::shared_ptr<const Tokenizer> tokenizer_beside_tokens(const std::string& source);
/// The corpus that the sources denote: a prepared one (prepared_corpus() in data/dataset/dataset.h), to which the
/// options do not apply; else the text, by load_corpus(), whose notes are printed to stderr. Throws Error, naming
/// --resume, for a source that is a run directory, and what the two functions throw.
Corpus read_corpus(const std::vector<std::string>& sources, const CorpusOptions& options);
/// For a new run on a corpus that was prepared: returns the tokenizer of its tokens, and sets the fields of the
/// configuration that describe the tokenizer (describe_tokenizer()) or were fixed when the corpus was prepared
/// (val_fraction). `tokenizer` is the one that the user named, or null.
///
/// A file of maki contains its tokenizer; if another one is given, it is returned, and make_dataset() rejects it. A
/// file of another program contains only ids: with the given tokenizer, or else that of tokenizer_beside_tokens(), it
/// is split by config.val_fraction, all its ids are checked, and `corpus` receives the result and the number of
/// characters.
///
/// Throws Error if an option was given whose value was fixed when the text became tokens, such as --tokenizer or
/// --encoding; CorpusError if the corpus has no tokenizer and none is given or found, or if an id is not one of the
/// tokenizer.
/// Requires: corpus.prepared is not null.
std::shared_ptr<const Tokenizer> adopt_prepared(Corpus& corpus, const ConfigFlags& flags,
                                                std::shared_ptr<const Tokenizer> tokenizer, Config& config);
/// For a new run: an option that was given and describes a tokenizer, if there is one.
std::optional<std::string> tokenizer_option(const ConfigFlags& flags);
/// The tokenizer of the teachers that are other runs, which the configuration then describes, unless options describe
/// another; else null. Throws what reading_teacher() throws.
std::shared_ptr<const Tokenizer> tokenizer_of_teacher(const ConfigFlags& flags, Config& config);
/// Reads config.corpus, the corpus of an existing run, again. `hash` is Corpus::hash as the run's checkpoint stores it.
/// Throws CorpusError if the corpus has another hash, with the advice what to do then, and what read_corpus() throws.
Corpus reread_corpus(const Config& config, const std::string& hash, const std::string& advice);

/// Makes paths absolute, so that a run can be resumed from another directory. "-" and names such as "@stories" stay.
/// Throws CorpusError for a path that cannot be made absolute.
std::vector<std::string> absolute_sources(std::vector<std::string> sources);

/// The sources from which to read the text of `run` again: those given now, else the stored ones. `run` is the path of
/// the run, for messages. If none are given, throws CorpusError if the stored text came from standard input, even in
/// part, because it cannot be read a second time, or if it is gone, and Error if no sources are stored, as in an
/// imported run.
std::vector<std::string> resume_sources(const std::string& run, const std::vector<std::string>& given,
                                        const std::vector<std::string>& stored);

/// Tells on stderr of special tokens that are written in a text and read as ordinary characters. `tokenizer` is null if
/// the configuration describes a new one.
void note_unread_specials(const Corpus& corpus, const Tokenizer* tokenizer, const Config& config);

}  // namespace maki
