#if defined(__linux__)
#include "tests/durability/supervisor.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <stdexcept>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <utility>

#include "data/io/descriptor.h"

namespace maki::tests {
namespace {

// Which arguments of a system call say what.
struct Row {
  enum class Bytes : std::uint8_t { none, read, write };
  int number;
  const char* name;
  int descriptor = -1;  // of the file, or of the directory in which the path begins
  int path = -1;
  int from_descriptor = -1, from = -1;  // of a rename: what is renamed
  Bytes bytes = Bytes::none;            // in the second argument, as many as the third says
  bool is_list = false;                 // the second argument is an array of iovec, as long as the third says
  int offset = -1;                      // in the file
};

Row of_file(int number, const char* name) { return {.number = number, .name = name, .descriptor = 0}; }
Row of_path(int number, const char* name) { return {.number = number, .name = name, .path = 0}; }
Row of_path_at(int number, const char* name) { return {.number = number, .name = name, .descriptor = 0, .path = 1}; }
Row of_bytes(int number, const char* name, Row::Bytes bytes, bool is_list = false, int offset = -1) {
  return {.number = number, .name = name, .descriptor = 0, .bytes = bytes, .is_list = is_list, .offset = offset};
}

#define CALL(name) SYS_##name, #name
const std::vector<Row>& rows() {
  using enum Row::Bytes;
  static const std::vector<Row> all = {
    of_bytes(CALL(read), read),
    of_bytes(CALL(pread64), read, false, 3),
    of_bytes(CALL(readv), read, true),
    of_bytes(CALL(preadv), read, true, 3),
    of_bytes(CALL(write), write),
    of_bytes(CALL(pwrite64), write, false, 3),
    of_bytes(CALL(writev), write, true),
    of_bytes(CALL(pwritev), write, true, 3),
    of_file(CALL(close)),
    of_file(CALL(fsync)),
    of_file(CALL(fdatasync)),
    of_file(CALL(fstat)),
    of_file(CALL(fstatfs)),
    of_file(CALL(lseek)),
    of_file(CALL(ftruncate)),
    of_file(CALL(fallocate)),
    of_file(CALL(fchmod)),
    of_file(CALL(flock)),
    of_file(CALL(fcntl)),
    of_file(CALL(getdents64)),
    of_file(CALL(copy_file_range)),
    of_file(CALL(sendfile)),
    {.number = SYS_mmap, .name = "mmap", .descriptor = 4},
    of_path(CALL(truncate)),
    of_path(CALL(statfs)),
    of_path_at(CALL(openat)),
    of_path_at(CALL(mkdirat)),
    of_path_at(CALL(unlinkat)),
    of_path_at(CALL(fchmodat)),
    of_path_at(CALL(faccessat)),
    of_path_at(CALL(faccessat2)),
    of_path_at(CALL(newfstatat)),
    of_path_at(CALL(statx)),
    of_path_at(CALL(readlinkat)),
    of_path_at(CALL(utimensat)),
    {.number = SYS_renameat, .name = "renameat", .descriptor = 2, .path = 3, .from_descriptor = 0, .from = 1},
    {.number = SYS_renameat2, .name = "renameat2", .descriptor = 2, .path = 3, .from_descriptor = 0, .from = 1},
    {.number = SYS_linkat, .name = "linkat", .descriptor = 2, .path = 3, .from_descriptor = 0, .from = 1},
#if defined(__x86_64__)
    of_path(CALL(open)),
    of_path(CALL(creat)),
    of_path(CALL(stat)),
    of_path(CALL(lstat)),
    of_path(CALL(access)),
    of_path(CALL(readlink)),
    of_path(CALL(mkdir)),
    of_path(CALL(rmdir)),
    of_path(CALL(unlink)),
    of_path(CALL(chmod)),
    {.number = SYS_rename, .name = "rename", .path = 1, .from = 0},
    {.number = SYS_link, .name = "link", .path = 1, .from = 0},
#endif
  };
  return all;
}
#undef CALL

// The filter of the process: these calls ask, all others are made.
std::vector<sock_filter> filter() {
  const auto statement = [](int code, std::size_t k) {
    return sock_filter{static_cast<std::uint16_t>(code), 0, 0, static_cast<std::uint32_t>(k)};
  };
  std::vector<sock_filter> program = {statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const Row& row : rows()) {
    program.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(row.number)});
    program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF));
  }
  program.push_back(statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  return program;
}

// Installs the filter, and returns the descriptor from which its questions are read; -1 if the system refuses.
int install_filter(std::vector<sock_filter>& program) {
  const sock_fprog all{static_cast<unsigned short>(program.size()), program.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -1;
  return static_cast<int>(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &all));
}

// Another process of the same user.
class Process {
 public:
  explicit Process(pid_t id) : id_(id) {}

  /// A descriptor of this process for the open file that has a descriptor there.
  int open_file(int descriptor) const {
    const Descriptor process(posix_file_system(), "a process",
                             Descriptor::Opened{static_cast<int>(syscall(SYS_pidfd_open, id_, 0))});
    return static_cast<int>(syscall(SYS_pidfd_getfd, process.number(), descriptor, 0));
  }
  bool read(std::uint64_t address, void* bytes, std::size_t size) const {
    return move(process_vm_readv, address, bytes, size);
  }
  bool write(std::uint64_t address, void* bytes, std::size_t size) const {
    return move(process_vm_writev, address, bytes, size);
  }
  std::string text(std::uint64_t address) const {
    constexpr std::uint64_t kPage = 4096;  // at least: memory behind the page of the text may not be mapped
    std::string text;
    for (;;) {
      std::array<char, kPage> part{};
      const std::size_t size = kPage - (address + text.size()) % kPage;
      if (!read(address + text.size(), part.data(), size)) return text;
      const std::string_view piece = std::string_view(part.data(), size);
      text += piece.substr(0, piece.find('\0'));
      if (piece.find('\0') != std::string_view::npos) return text;
    }
  }
  /// Where a link of /proc leads: "cwd", or "fd/3".
  std::string link(const std::string& name) const {
    std::array<char, PATH_MAX> path{};
    const ssize_t size = readlink(fmt::format("/proc/{}/{}", id_, name).c_str(), path.data(), path.size());
    return {path.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

 private:
  template <class Call>
  bool move(Call call, std::uint64_t address, void* bytes, std::size_t size) const {
    const iovec here{bytes, size}, there{reinterpret_cast<void*>(address), size};
    return call(id_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(size);
  }
  pid_t id_;
};

// A call that a process is about to make.
struct Question {
  const Row* row;
  const seccomp_data* data;
  Process process;

  std::uint64_t argument(int at) const { return data->args[at]; }
  int descriptor(int at) const { return static_cast<int>(argument(at)); }
  /// The path of a file, from a path, from a descriptor, or from a path in the directory of a descriptor.
  std::filesystem::path path(int at, int path_at) const {
    const std::string relative = path_at < 0 ? "" : process.text(argument(path_at));
    const bool is_file = at >= 0 && descriptor(at) != AT_FDCWD;
    const std::filesystem::path base = process.link(is_file ? fmt::format("fd/{}", descriptor(at)) : "cwd");
    return relative.empty() ? base : (base / relative).lexically_normal();
  }
  /// The parts of memory that are read or written.
  std::vector<iovec> parts() const {
    if (row->bytes == Row::Bytes::none) return {};
    if (!row->is_list) return {{reinterpret_cast<void*>(argument(1)), argument(2)}};
    std::vector<iovec> list(argument(2));
    process.read(argument(1), list.data(), list.size() * sizeof(iovec));
    return list;
  }
  /// Reads or writes the first byte in the place of the process. Returns what its call is to return, or -errno.
  ssize_t transfer_one_byte() const {
    const std::vector<iovec> list = parts();
    const auto part = std::ranges::find_if(list, [](const iovec& each) { return each.iov_len > 0; });
    const auto address = reinterpret_cast<std::uint64_t>(part->iov_base);
    const Descriptor file(posix_file_system(), "a file of a process",
                          Descriptor::Opened{process.open_file(descriptor(0))});
    const bool reads = row->bytes == Row::Bytes::read, at_offset = row->offset >= 0;
    const auto offset = static_cast<off_t>(at_offset ? argument(row->offset) : 0);
    char byte = 0;
    if (!reads) process.read(address, &byte, 1);
    const ssize_t n = reads ? (at_offset ? pread(file.number(), &byte, 1, offset) : ::read(file.number(), &byte, 1))
                            : (at_offset ? pwrite(file.number(), &byte, 1, offset) : ::write(file.number(), &byte, 1));
    if (reads && n == 1) process.write(address, &byte, 1);
    return n < 0 ? -errno : n;
  }
};

// Returns false if the call does not concern the folder.
bool describe(const Question& question, const std::string& folder, SystemCall& call) {
  const auto in_folder = [&](const std::filesystem::path& path) { return path.lexically_relative(folder).string(); };
  const auto is_below = [](const std::string& path) { return !path.empty() && !path.starts_with(".."); };
  const Row& row = *question.row;
  call.name = row.name;
  call.path = in_folder(question.path(row.descriptor, row.path));
  for (const iovec& part : question.parts()) call.transfers += part.iov_len;
  return is_below(call.path) || (row.from >= 0 && is_below(in_folder(question.path(row.from_descriptor, row.from))));
}

// Keeps this thread and a process on one processor while it exists: a question and its answer then take half the time.
class OneProcessor {
 public:
  explicit OneProcessor(pid_t process) {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &here);
    sched_setaffinity(0, sizeof here, &here);
    sched_setaffinity(process, sizeof here, &here);
  }
  ~OneProcessor() { sched_setaffinity(0, sizeof before_, &before_); }
  OneProcessor(const OneProcessor&) = delete;
  OneProcessor& operator=(const OneProcessor&) = delete;

 private:
  cpu_set_t before_{};
};

}  // namespace

Supervisor::Supervisor(std::string folder, const CallFault& fault) : folder_(std::move(folder)), fault_(fault) {
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_) != 0) throw std::runtime_error("cannot make a socket");
}

Supervisor::~Supervisor() {
  for (const int each : {ends_[0], ends_[1], questions_}) {
    if (each >= 0) close(each);
  }
}

bool Supervisor::submit() const {
  std::vector<sock_filter> program = filter();
  const int questions = install_filter(program);
  // Neither call asks, and nothing is freed in between, for which a sanitizer may call mmap(): nobody would answer yet.
  // The answer means that the supervisor has the descriptor, which execv() closes.
  int ready = 0;
  send(ends_[1], &questions, sizeof questions, MSG_NOSIGNAL);
  recv(ends_[1], &ready, sizeof ready, 0);
  return questions >= 0;
}

bool Supervisor::supervise(pid_t process) {
  process_ = process;
  close(std::exchange(ends_[1], -1));  // so that recv() also ends if the process does
  int questions = -1;
  recv(ends_[0], &questions, sizeof questions, 0);
  if (questions >= 0) questions_ = Process(process).open_file(questions);
  send(ends_[0], &questions, sizeof questions, MSG_NOSIGNAL);
  if (questions_ < 0) return false;
  const OneProcessor together(process);
  for (;;) {
    pollfd waiting{questions_, POLLIN, 0};
    if (poll(&waiting, 1, -1) < 0 && errno == EINTR) continue;
    if ((waiting.revents & POLLIN) == 0) return true;  // the process has ended
    seccomp_notif asked{};
    if (ioctl(questions_, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0) answer(asked);  // fails if it has just ended
  }
}

void Supervisor::answer(const seccomp_notif& asked) {
  const auto row = std::ranges::find(rows(), asked.data.nr, &Row::number);
  const Question question{&*row, &asked.data, Process(process_)};
  seccomp_notif_resp response{};
  response.id = asked.id;
  response.flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
  SystemCall call;
  if (describe(question, folder_, call)) {
    if (before_call) before_call(call);
    calls_.push_back(call);
    if (call.name == "fsync") response.flags = 0;  // has succeeded: no test waits for the disk
    if (calls_.size() == fault_.at + 1) {
      switch (fault_.kind) {
        case CallFault::Kind::none:
          break;
        case CallFault::Kind::killed:
          kill(process_, SIGKILL);
          return;
        case CallFault::Kind::error:
          response.flags = 0, response.error = -fault_.error;
          break;
        case CallFault::Kind::one_byte:
          if (call.transfers > 1) {
            const ssize_t result = question.transfer_one_byte();
            response.flags = 0;
            (result < 0 ? response.error = static_cast<int>(result) : response.val = result);
          }
          break;
      }
    }
  }
  ioctl(questions_, SECCOMP_IOCTL_NOTIF_SEND, &response);  // fails if the process has been killed
}

}  // namespace maki::tests
#endif
