// The MPI library as a table of functions (mpi_calls.h): a module of its own, which the program loads when it needs it.
#include <algorithm>
#include <cstddef>
#include <mpi.h>
#include <string>
#include <vector>

#include "train/loop/team/mpi_calls.h"

namespace {

// The requests that are under way; tickets are indices.
std::vector<MPI_Request> requests;
std::vector<std::size_t> unused;
MPI_Comm world = MPI_COMM_NULL;

std::int64_t keep(int status, MPI_Request request) {
  if (status != MPI_SUCCESS) return -1;
  if (unused.empty()) {
    requests.push_back(request);
    return static_cast<std::int64_t>(requests.size() - 1);
  }
  const std::size_t index = unused.back();
  unused.pop_back();
  requests[index] = request;
  return static_cast<std::int64_t>(index);
}

const char* begin() {
  int provided = 0;
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS)
    return "MPI_Init_thread failed";
  if (provided < MPI_THREAD_SERIALIZED) return "the library cannot be used by several threads in turn";
  // A communicator of its own, so that no message of anybody else is received.
  if (MPI_Comm_dup(MPI_COMM_WORLD, &world) != MPI_SUCCESS) return "MPI_Comm_dup failed";
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  return nullptr;
}

int rank() {
  int result = 0;
  MPI_Comm_rank(world, &result);
  return result;
}

int size() {
  int result = 1;
  MPI_Comm_size(world, &result);
  return result;
}

const char* host() {
  static char name[MPI_MAX_PROCESSOR_NAME] = {};
  int length = 0;
  if (name[0] == '\0') MPI_Get_processor_name(name, &length);
  return name;
}

const char* library() {
  static const std::string version = [] {
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    std::string whole = text;
    std::ranges::replace(whole, '\t', ' ');
    return whole.substr(0, whole.find_first_of(",\n"));
  }();
  return version.c_str();
}

std::int64_t send(int to, int tag, const void* bytes, int count) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = MPI_Isend(bytes, count, MPI_BYTE, to, tag, world, &request);
  return keep(status, request);
}

std::int64_t receive(int from, int tag, void* into, int count) {
  MPI_Request request = MPI_REQUEST_NULL;
  const int status = MPI_Irecv(into, count, MPI_BYTE, from, tag, world, &request);
  return keep(status, request);
}

void forget(std::int64_t ticket) { unused.push_back(static_cast<std::size_t>(ticket)); }

int finished(std::int64_t ticket) {
  int done = 0;
  if (MPI_Test(&requests[static_cast<std::size_t>(ticket)], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return -1;
  if (done == 0) return 0;
  forget(ticket);
  return 1;
}

void abandon(std::int64_t ticket) {
  MPI_Request& request = requests[static_cast<std::size_t>(ticket)];
  MPI_Cancel(&request);
  MPI_Request_free(&request);
  forget(ticket);
}

int poll(int tag, int* from, void* into, int most) {
  int there = 0, count = 0;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, tag, world, &there, &status) != MPI_SUCCESS || there == 0) return -1;
  if (MPI_Recv(into, most, MPI_BYTE, status.MPI_SOURCE, tag, world, &status) != MPI_SUCCESS) return -1;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *from = status.MPI_SOURCE;
  return count;
}

void abort(int exit_code) { MPI_Abort(MPI_COMM_WORLD, exit_code); }

void end() { MPI_Finalize(); }

}  // namespace

extern "C" {
extern const maki::MpiCalls maki_mpi_calls;
const maki::MpiCalls maki_mpi_calls = {.begin = begin,
                                       .rank = rank,
                                       .size = size,
                                       .host = host,
                                       .library = library,
                                       .send = send,
                                       .receive = receive,
                                       .finished = finished,
                                       .abandon = abandon,
                                       .poll = poll,
                                       .abort = abort,
                                       .end = end};
}
