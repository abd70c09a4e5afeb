#include "data/io/output.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "data/io/error.h"
#include "data/io/file.h"

namespace maki {
namespace {

namespace stdfs = std::filesystem;
using Status = struct stat;

// Requires, of an error when an input was looked up, that it means that nobody can read the input. Otherwise it might
// be what is to be replaced.
void require_unreadable(const std::string& path, int error) {
  const bool unreadable = error == ENOENT || error == ENOTDIR || error == ELOOP || error == EACCES;
  check<CheckpointError>(unreadable, "{}: cannot be accessed: {}", path, std::strerror(error));
}

bool is_at(const std::string& path, const Status& file) {
  Status status = {};
  if (stat(path.c_str(), &status) == 0) return is_same_file(status, file);
  require_unreadable(path, errno);
  return false;
}

// What is at a path; nullopt if nothing is.
std::optional<Status> status_of(const std::string& path, int flags) {
  Status status = {};
  if (fstatat(AT_FDCWD, path.c_str(), &status, flags) == 0) return status;
  const int error = errno;
  check<CheckpointError>(error == ENOENT || error == ENOTDIR, "{}: cannot be accessed: {}", path, std::strerror(error));
  return std::nullopt;
}

// What is at a path. If that is a symbolic link to a file or directory, `path` becomes the path of this one.
std::optional<Status> look_up(std::string& path) {
  check(!path.empty(), "out: must name the file or directory to write");
  const std::optional<Status> status = status_of(path, 0), link = status_of(path, AT_SYMLINK_NOFOLLOW);
  check(status || !link, "{}: is a symbolic link that leads nowhere; choose another name", path);
  if (status && link && S_ISLNK(link->st_mode) && (S_ISREG(status->st_mode) || S_ISDIR(status->st_mode))) {
    std::error_code error;
    const std::string target = stdfs::canonical(path, error).string();
    check<CheckpointError>(!error, "{}: cannot be accessed: {}", path, error.message());
    path = target;
  }
  return status;
}

bool is_standard_output(const Status& file) {
  Status status = {};
  return fstat(STDOUT_FILENO, &status) == 0 && is_same_file(status, file);
}

// Whether a file is an input, or in a directory that is one.
bool is_read_from(const Status& file, const std::string& input) {
  Status status = {};
  if (input == "-") return fstat(STDIN_FILENO, &status) == 0 && is_same_file(status, file);
  if (is_at(input, file)) return true;
  std::error_code error;
  stdfs::recursive_directory_iterator at(input, stdfs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end; at.increment(error)) {
    if (is_at(at->path().string(), file)) return true;
  }
  if (error) require_unreadable(input, error.value());
  return false;
}

// Whether a directory is an input or contains one.
bool contains_input(const Status& directory, const std::string& input) {
  std::error_code error;
  stdfs::path path = stdfs::canonical(input, error);
  if (error) {
    require_unreadable(input, error.value());
    return false;
  }
  for (;; path = path.parent_path()) {
    if (is_at(path.string(), directory)) return true;
    if (path == path.parent_path()) return false;
  }
}

// The first entry of a directory without a counterpart of the same kind in another one; empty if there is none.
std::string first_without_counterpart(const std::string& directory, const std::string& other) {
  std::error_code error;
  stdfs::recursive_directory_iterator at(directory, error), end;
  for (; !error && at != end; at.increment(error)) {
    const stdfs::path name = at->path().lexically_relative(directory);
    const stdfs::file_type kind = entry_kind(at->path().string());
    const bool plain = kind == stdfs::file_type::regular || kind == stdfs::file_type::directory;
    if (!plain || entry_kind((other / name).string()) != kind) return name.string();
  }
  check<CheckpointError>(!error, "{}: cannot be listed: {}", directory, error.message());
  return "";
}

void write_complete(Temporary& file, const OutputPlace& place, const std::vector<Bytes>& pieces) {
  try {
    file.write(pieces);
  } catch (const CheckpointError& error) {
    file.fail_for(place.path, error.what());
  }
}

void rename_to_place(Temporary& file, const OutputPlace& place) {
  try {
    const bool allowed = !place.mode || chmod(file.path().c_str(), *place.mode) == 0;
    check<CheckpointError>(allowed, "{}: chmod failed: {}", file.path(), std::strerror(errno));
    if (place.force) {
      file.move_to(place.path);
    } else {
      file.move_to_new(place.path);
    }
  } catch (const CheckpointError& error) {
    file.fail_for(place.path, error.what());
  }
}

void write_stream(FileSystem& fs, const OutputPlace& place, const std::vector<Bytes>& pieces) {
  // A file to which the standard output was redirected must not be opened again: what is printed later would begin at
  // its old position.
  const int opened =
      place.is_standard_output ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : fs.open(place.path, O_WRONLY | O_NOCTTY, 0);
  Descriptor stream(fs, place.path, Descriptor::Opened{opened});
  for (const Bytes piece : pieces) stream.write_all(piece);
  stream.close();
}

// Whether a regular file has exactly this text.
bool has_text(FileSystem& fs, const std::string& path, const std::string& text) {
  std::error_code error;
  if (!stdfs::is_regular_file(path, error) || stdfs::file_size(path, error) != text.size()) return false;
  return read_file_limited(fs, path, text.size()) == text;
}

}  // namespace

bool is_standard_output(const std::string& path) {
  Status status = {};
  return stat(path.c_str(), &status) == 0 && is_standard_output(status);
}

OutputPlace require_file_place(const OutputPath& out, Streams streams) {
  check(out.path != "-",
        "-: is no name of a file to write; name ./- for a file of this name, or /dev/stdout where a single file is "
        "written");
  OutputPlace place{.path = out.path, .force = out.force, .mode = {}};
  const std::optional<Status> status = look_up(place.path);
  check(status || !out.path.ends_with('/'), "{}: is the name of a directory; name a file", out.path);
  if (!status) return place;
  check(!S_ISDIR(status->st_mode), "{}: is a directory; name a file", out.path);
  place.is_standard_output = is_standard_output(*status);
  place.is_stream = place.is_standard_output || !S_ISREG(status->st_mode);
  if (place.is_stream) {
    const bool accepted = streams == Streams::accepted && !out.companion && !S_ISBLK(status->st_mode);
    check(accepted, "{}: must be a new file or, with `force`, one to be replaced, but is a device or a pipe", out.path);
    return place;
  }
  const bool read =
      std::ranges::any_of(out.inputs, [&](const std::string& each) { return is_read_from(*status, each); });
  check(!read, "{}: is read by this command and cannot be its output; choose another name", out.path);
  check(out.force, "{}: exists already; choose another name, or replace it with `force`", out.path);
  place.mode = status->st_mode & 07777U;
  return place;
}

OutputPlace require_directory_place(const OutputPath& out) {
  check(out.path != "-", "-: is no name of a directory to write; choose another name, or ./-");
  OutputPlace place{.path = out.path, .force = out.force, .mode = {}};
  while (place.path.size() > 1 && place.path.ends_with('/')) place.path.pop_back();
  const std::optional<Status> status = look_up(place.path);
  if (!status) return place;
  check(S_ISDIR(status->st_mode), "{}: exists and is not a directory; choose another name", out.path);
  check(!is_at(".", *status), "{}: is the current directory; name a new one", out.path);
  const bool read =
      std::ranges::any_of(out.inputs, [&](const std::string& each) { return contains_input(*status, each); });
  check(!read, "{}: contains what this command reads and cannot be its output; choose another name", out.path);
  check<OccupiedOutput>(
      out.force || file_names(place.path).empty(),
      "{}: exists already and is not an empty directory; choose another name, or replace it with `force`", out.path);
  place.mode = status->st_mode & 07777U;
  return place;
}

void move_to_place(FileSystem& fs, Temporary& file, const OutputPlace& place) {
  rename_to_place(file, place);
  sync_place(fs, place.path);
}

void write_output(FileSystem& fs, const OutputPath& out, const std::vector<Bytes>& pieces) {
  const OutputPlace place = require_file_place(out);
  if (place.is_stream) return write_stream(fs, place, pieces);
  const bool alone = !out.companion || has_text(fs, out.companion_path(), out.companion->text);
  const OutputPlace beside =
      alone ? OutputPlace{} : require_file_place({out.companion_path(), out.force, out.inputs}, Streams::refused);
  const Parents parents(fs, place.path);
  Temporary file(fs, unused_name_beside(place.path));
  write_complete(file, place, pieces);
  if (alone) return move_to_place(fs, file, place);
  Temporary companion(fs, unused_name_beside(beside.path));
  write_complete(companion, beside, {text_bytes(out.companion->text)});
  rename_to_place(companion, beside);
  try {
    sync_directory(fs, parent_directory(beside.path));
    rename_to_place(file, place);
  } catch (...) {
    if (!beside.mode) fs.unlink(beside.path);  // else the one that it replaced is gone
    throw;
  }
  sync_place(fs, place.path);
}

OutputDirectory::OutputDirectory(FileSystem& fs, OutputPath out)
    : fs_(fs),
      out_(std::move(out)),
      place_(require_directory_place(out_)),
      parents_(fs, place_.path),
      temporary_(fs, unused_name_beside(place_.path)) {
  temporary_.create_directory_for(place_.path);
}

void OutputDirectory::fail_in_place(std::string message) const {
  for (std::size_t at = 0; (at = message.find(path(), at)) != std::string::npos; at += place_.path.size())
    message.replace(at, path().size(), place_.path);
  throw CheckpointError(message);
}

void OutputDirectory::commit() {
  const std::string& place = place_.path;
  const bool allowed = !place_.mode || chmod(path().c_str(), *place_.mode) == 0;
  check<CheckpointError>(allowed, "{}: chmod failed: {}", place, std::strerror(errno));
  if (file_names(place).empty()) {
    const int renamed = fs_.rename(path(), place), reason = errno;
    if (renamed != 0) require_directory_place(out_);  // another process may have filled it
    check<CheckpointError>(renamed == 0, "{}: cannot be made or replaced: {}; choose another name", place,
                           std::strerror(reason));
    temporary_.keep();
  } else {
    require_directory_place(out_);
    const std::string other = first_without_counterpart(place, path());
    check(other.empty(), "{}: contains {}, which this command does not write; choose another name", out_.path, other);
    const int exchanged = fs_.exchange(path(), place);
    check<CheckpointError>(exchanged == 0, "{}: cannot be replaced: {}; choose another name", place,
                           std::strerror(errno));
  }
  sync_place(fs_, place);
  temporary_.remove();  // what was there before, and would be again if the power failed before the sync
}

}  // namespace maki
