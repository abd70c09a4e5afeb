#include "train/app/compressor.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <numbers>
#include <optional>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "autograd/core/table.h"
#include "data/io/number.h"
#include "data/io/temporary.h"

extern char** environ;

namespace maki {
namespace {

namespace fs = std::filesystem;

struct Compressor {
  const char *name, *package;
  /// The command that compresses `in`, for a text of at most `bytes` bytes, into `out` or to standard output.
  std::vector<std::string> (*command)(const std::string& in, const std::string& out, std::uintmax_t bytes);
  bool to_stdout;
};

std::vector<std::string> xz_command(const std::string& in, const std::string&, std::uintmax_t) {
  return {"xz", "-9e", "--threads=1", "--keep", "--stdout", in};
}

// What `zpaq -m5` uses for text, spelled out, because -m5 chooses the size of its tables by the size of the file: a
// text that is just above a megabyte would be compressed with twice the memory of its beginning, and the difference of
// the two sizes would be that much too small.
std::vector<std::string> zpaq_command(const std::string& in, const std::string& out, std::uintmax_t bytes) {
  constexpr int kMegabyteBits = 20, kMostBits = 11;
  constexpr std::uintmax_t kBlockOverhead = 4095;
  const int size = std::clamp(static_cast<int>(std::bit_width(bytes + kBlockOverhead)) - kMegabyteBits, 0, kMostBits);
  constexpr const char* kModel =
      "w2c0,1010,255i1c256ci1,1,1,1,1,1,2ac0,2,0,255i1c0,3,0,0,255i1c0,4,0,0,0,255i1mm16ts19t0";
  return {"zpaq", "add", out, in, "-method", fmt::format("x{},0{}", size, kModel), "-threads", "1"};
}

constexpr Compressor kCompressorRows[] = {{"xz", "xz-utils", xz_command, true}, {"zpaq", "zpaq", zpaq_command, false}};
constexpr Table kCompressors("against", kCompressorRows);

bool is_installed(const std::string& program) {
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    if (access((std::string(folder) + "/" + program).c_str(), X_OK) == 0) return true;
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
  }
  return false;
}

// A folder for temporary files, which is removed at the end, also by a signal.
class Folder {
 public:
  Folder() {
    std::error_code error;
    const fs::path parent = fs::temp_directory_path(error);
    check(!error, "against: there is no folder for temporary files: {}; set TMPDIR", error.message());
    path_ = (parent / "maki-against-XXXXXX").string();
    check(mkdtemp(path_.data()) != nullptr, "against: cannot create a temporary folder {}", path_);
    temporary_.emplace(posix_file_system(), path_);
  }
  std::string file(const char* name) const { return path_ + "/" + name; }

 private:
  std::string path_;
  std::optional<Temporary> temporary_;
};

// Runs a command without a shell. Its standard output goes to a file, and what it reports to nowhere.
bool run_command(const std::vector<std::string>& words, const std::string& output) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, arguments[0], &files, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  int status = 0;
  return failed == 0 && waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

std::uintmax_t bytes_of(const std::vector<std::string_view>& pieces) {
  std::uintmax_t sum = 0;
  for (const std::string_view piece : pieces) sum += piece.size();
  return sum;
}

// How many bytes the pieces take when they are compressed, with the settings for a text of `largest` bytes.
double compressed_bytes(const Compressor& compressor, const std::vector<std::string_view>& pieces,
                        std::uintmax_t largest) {
  const Folder folder;
  const std::string in = folder.file("text"), out = folder.file("text.zpaq"), log = folder.file("output");
  Descriptor file(posix_file_system(), in, O_WRONLY | O_CREAT | O_EXCL, throw_as<Error>);
  for (const std::string_view piece : pieces) file.write_all(text_bytes(piece));
  file.close();
  check(run_command(compressor.command(in, out, largest), log), "against: {} failed to compress {}; run it by hand",
        compressor.name, pluralize(static_cast<std::int64_t>(bytes_of(pieces)), "byte"));
  return static_cast<double>(fs::file_size(compressor.to_stdout ? log : out));
}

}  // namespace

std::vector<std::string> compressor_names() { return kCompressors.names(); }

void require_compressor(const std::string& name) {
  const Compressor& compressor = kCompressors.row(name);
  check(is_installed(compressor.name),
        "against: {0} is not installed; install the package {1}, such as with: "
        "sudo apt install {1}",
        compressor.name, compressor.package);
}

ReportLine measure_compressor(const std::string& name, const std::vector<std::string_view>& before,
                              const std::vector<std::string_view>& text, std::int64_t characters) {
  const Compressor& compressor = kCompressors.row(name);
  std::vector<std::string_view> all = before;
  all.insert(all.end(), text.begin(), text.end());
  const std::uintmax_t largest = bytes_of(all);
  const double bytes = compressed_bytes(compressor, all, largest) - compressed_bytes(compressor, before, largest);
  const double nats = bytes * 8 * std::numbers::ln2 / static_cast<double>(characters);
  const std::string what =
      before.empty() ? "" : fmt::format(", after {}", pluralize(static_cast<std::int64_t>(bytes_of(before)), "byte"));
  return {name,
          fmt::format("{:.4f} nats per character: {} compressed{}", nats,
                      pluralize(static_cast<std::int64_t>(bytes), "byte"), what),
          {{"against", Facts{{"compressor", name}, {"bytes", bytes}, {"nats_per_character", nats}}}}};
}

}  // namespace maki
