#include "tests/cli/process.h"

#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace maki::tests {

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "maki-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}
TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}
std::string TemporaryFolder::write(const std::string& name, const std::string& content) const {
  const std::string path = *this / name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

namespace {

[[noreturn]] void become_maki(const std::vector<std::string>& arguments, const RunOptions& options,
                              const std::string& in, const std::string& out, const std::string& err) {
  dup2(open(in.c_str(), O_RDONLY), STDIN_FILENO);
  dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDOUT_FILENO);
  dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), STDERR_FILENO);
  if (!options.working_directory.empty() && chdir(options.working_directory.c_str()) != 0) _exit(126);
  for (const std::string& variable : options.environment) putenv(const_cast<char*>(variable.c_str()));
  if (options.file_size_limit > 0) {
    const rlimit limit{options.file_size_limit, options.file_size_limit};
    setrlimit(RLIMIT_FSIZE, &limit);
    signal(SIGXFSZ, SIG_IGN);  // so that write() fails with EFBIG, as a full disk does with ENOSPC
  }
  std::vector<char*> list = {const_cast<char*>(MAKI_BINARY)};
  for (const std::string& argument : arguments) list.push_back(const_cast<char*>(argument.c_str()));
  list.push_back(nullptr);
  execv(MAKI_BINARY, list.data());
  _exit(127);
}

}  // namespace

Finished run_maki(const std::vector<std::string>& arguments, const RunOptions& options) {
  const TemporaryFolder folder;
  const std::string in = folder.write("in", options.input), out = folder / "out", err = folder / "err";
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    become_maki(arguments, options, in, options.output_file.empty() ? out : options.output_file,
                options.error_file.empty() ? err : options.error_file);
  }
  if (options.meanwhile) options.meanwhile(child);
  int status = 0;
  waitpid(child, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return {code, read_text(out), read_text(err)};
}

}  // namespace maki::tests
