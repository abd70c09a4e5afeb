// What operating systems offer for files and processes under different names or with different guarantees. Everything
// else that maki asks of a system is POSIX. os_linux.cpp and os_macos.cpp implement it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <sys/stat.h>

namespace maki::os {

// Each returns what a system call does, 0 or -1, with the reason in errno.

/// Returns when what was written to a file or directory survives a power failure.
int sync(int descriptor);
/// Renames, or fails with EEXIST if anything is at `to`. EINVAL or ENOSYS: the file system does not offer it.
int rename_to_new(const char* from, const char* to);
/// Each gets the name of the other.
int exchange(const char* one, const char* other);

/// Loads pages of a mapped file. Returns 0, or a number of errno; EINVAL if the system cannot report that a disk fails,
/// but ends the process that reads such a page.
int load_pages(std::byte* begin, std::size_t size);
/// Calls body(directory, name) for each entry of an open directory but "." and "..", which body may remove. Calls only
/// functions that a signal handler may call.
void each_entry(int directory, void (*body)(int directory, const char* name));
/// Whether process `holder` holds the file of this path with flock(2), without taking the lock for a moment.
bool is_locked(const std::string& path, std::int64_t holder);
/// The type of the file system that holds an open file: "ext4", "nfs", "apfs", …; "type 0x…" with the number that Linux
/// reports for one without a name here; "unknown" if the system does not say it.
std::string file_system_type(int descriptor);
/// When a file was last modified.
timespec modified(const struct stat& status);

/// The path of the program of this process; empty if the system does not say it.
std::string program();
/// Bytes that can still be allocated without swapping; nullopt if the system does not say it. On Linux the smallest of
/// MemAvailable and of what the memory limits of this process's control groups (version 1 or 2) leave, read from the
/// files below `root`.
std::optional<std::int64_t> available_memory(const std::string& root = "");
/// The most bytes of memory that this process has had.
std::int64_t peak_memory();

}  // namespace maki::os
