// The scripts that a new user runs first: the commands that they print work as printed.
#include <array>
#include <cstdio>
#include <filesystem>
#include <stdexcept>
#include <sys/wait.h>

#include "tests/cli/require_refused.h"

using namespace maki::tests;

namespace {

const std::string kScripts = std::string(MAKI_SOURCE_DIR) + "/scripts/";

// Runs a shell command with the current build of maki and captures both output streams.
Finished shell(const std::string& line) {
  const std::string build = std::filesystem::path(MAKI_BINARY).parent_path().parent_path().string();
  FILE* const pipe = popen(("{ export MAKI_BUILD='" + build + "'; " + line + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("cannot start a shell");
  std::string text;
  std::array<char, 4096> buffer;
  for (std::size_t n = 0; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), text, ""};
}

}  // namespace

TEST_CASE("install.sh installs maki into the given folder, and prints what to add to the PATH") {
  const TemporaryFolder folder;
  const std::string prefix = folder / "pre fix", program = prefix + "/bin/maki";
  const std::string line = "export PATH=\"" + prefix + "/bin:$PATH\"";
  const std::string install = "'" + kScripts + "install.sh' '" + prefix + "'";
  // A PATH without maki. The printed line adds it.
  const std::string bare = "mkdir -p '" + folder / "tools" +
                           "'; for t in bash cmake id mkdir dirname; do ln -sf \"$(command -v $t)\" '" +
                           folder / "tools" + "'; done; export PATH='" + folder / "tools" + "'; ";
  const Finished first = shell(bare + install);
  INFO(first.out);
  REQUIRE(first.exit_code == 0);
  REQUIRE_THAT(first.out, ContainsSubstring(program + " is installed") && ContainsSubstring(line));
  REQUIRE_FALSE(std::filesystem::exists(prefix + "/include"));
  REQUIRE(shell(line + "; maki --version").out == run_maki({"--version"}).out);
  // If maki is on the PATH, a command to try is printed, however the folder was written.
  REQUIRE_THAT(shell(line + "; " + install).out, ContainsSubstring("Try it: maki train @stories"));
  REQUIRE_THAT(shell(line + "; " + install + "/").out, ContainsSubstring("Try it: maki train @stories"));
  // Another maki earlier on the PATH is named.
  folder.write("tools/maki", "");
  std::filesystem::permissions(folder / "tools/maki", std::filesystem::perms::owner_all);
  REQUIRE_THAT(shell(bare + install).out, ContainsSubstring("another maki first: " + folder / "tools/maki"));
}

TEST_CASE("install.sh reports in one sentence what it cannot do") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "");
  const Finished blocked = shell("'" + kScripts + "install.sh' '" + file + "/below'");
  REQUIRE(blocked.exit_code == 1);
  REQUIRE_THAT(blocked.out, ContainsSubstring("install.sh: " + file + "/below/bin cannot be written"));
  REQUIRE(shell("'" + kScripts + "install.sh' --prefix").exit_code == 2);
}

TEST_CASE("demo.sh trains for the given time, writes a text, and prints what to type next") {
  const TemporaryFolder folder;
  const std::string corpus = folder.write("my text.txt", small_text());
  std::filesystem::create_directory(folder / "maki");
  std::filesystem::copy(kScripts, folder / "maki/scripts");
  // The path is relative to the user's directory, not to the sources.
  const Finished demo = shell("cd '" + folder / "" + "' && DEMO_SECONDS=1 maki/scripts/demo.sh 'my text.txt'");
  INFO(demo.out);
  REQUIRE(demo.exit_code == 0);
  REQUIRE_THAT(demo.out, ContainsSubstring(folder / "maki/scripts/install.sh\n") &&
                             ContainsSubstring("maki generate " + folder / "maki/runs/demo-1\n") &&
                             ContainsSubstring("maki train my.txt"));
  const Finished again = run_maki({"generate", folder / "maki/runs/demo-1", "--max-tokens", "5"});
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
}

TEST_CASE("demo.sh refuses a text that does not exist before it builds") {
  const TemporaryFolder folder;
  const Finished demo = shell("cd '" + folder / "" + "' && unset MAKI_BUILD && '" + kScripts + "demo.sh' missing.txt");
  REQUIRE(demo.exit_code == 3);
  REQUIRE_THAT(demo.out, ContainsSubstring("CORPUS must be a file or directory that exists") &&
                             ContainsSubstring("got missing.txt"));
}

TEST_CASE("demo.sh ends with the exit code of maki, after its message") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "train");
  folder.write("train/maki", "#!/bin/sh\necho no memory is left >&2\nexit 2\n");
  std::filesystem::permissions(folder / "train/maki", std::filesystem::perms::owner_all);
  const Finished demo = shell("export MAKI_BUILD='" + folder / "" + "'; '" + kScripts + "demo.sh'");
  REQUIRE(demo.exit_code == 2);
  REQUIRE_THAT(demo.out, ContainsSubstring("no memory is left\n") && !ContainsSubstring("Next steps"));
}

TEST_CASE("a build that fails shows what it printed, and ends the script") {
  const TemporaryFolder folder;
  const std::string cmake = folder.write("cmake", "#!/bin/sh\necho the compiler is broken\nexit 7\n");
  std::filesystem::permissions(cmake, std::filesystem::perms::owner_all);
  const Finished built = shell("cd '" + folder / "" + "' && PATH=\"$PWD:$PATH\" bash -c 'set -euo pipefail; . \"" +
                               kScripts + "build.sh\"; build .; echo reached'");
  REQUIRE(built.exit_code == 1);
  REQUIRE_THAT(built.out, ContainsSubstring("the compiler is broken") && ContainsSubstring("/build.log") &&
                              !ContainsSubstring("reached"));
}

TEST_CASE("a build has as many jobs as there are cores and memory for, unless the user says how many") {
  const TemporaryFolder folder;
  for (const auto& [name, printed] : {std::pair{"nproc", "64"}, std::pair{"cat", "MemAvailable: 2400000 kB"}}) {
    const std::string program = folder.write(name, std::string("#!/bin/sh\necho ") + printed + "\n");
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  const std::string build = "PATH='" + folder / "" + "':\"$PATH\" bash -c 'set -euo pipefail; . \"" + kScripts +
                            "build.sh\"; limit_jobs; echo $CMAKE_BUILD_PARALLEL_LEVEL'";
  REQUIRE(shell("unset CMAKE_BUILD_PARALLEL_LEVEL; " + build).out == "2\n");
  REQUIRE(shell("export CMAKE_BUILD_PARALLEL_LEVEL=77; " + build).out == "77\n");
  folder.write("cat", "#!/bin/sh\necho MemAvailable: 1000 kB\n");
  std::filesystem::permissions(folder / "cat", std::filesystem::perms::owner_all);
  REQUIRE(shell("unset CMAKE_BUILD_PARALLEL_LEVEL; " + build).out == "1\n");
}

TEST_CASE("mutate.sh --listed refuses a pattern that no fault has") {
  const Finished refused = shell("'" + kScripts + "mutate.sh' --listed no-such-fault");
  REQUIRE(refused.exit_code == 2);
  REQUIRE_THAT(refused.out, ContainsSubstring("matches no-such-fault"));
}
