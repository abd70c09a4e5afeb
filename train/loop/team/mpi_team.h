// A team over MPI. A process has one if a launcher has started it together with others: mpirun, or srun of Slurm.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "train/loop/team/team.h"

namespace maki {

/// What a launcher says about this process, in the variables that Open MPI, MPICH and Slurm set.
struct Launch {
  int rank = 0, size = 1;
  int here = 1;   ///< processes on this machine, if that is known
  int place = 0;  ///< of this one among them, if that is known
};
/// A process that nobody has launched, or alone, is rank 0 of 1.
Launch launched();

/// Joins the processes that were launched together. `modules` are paths of modules (mpi_calls.h), of which the first
/// that exists is loaded. A rank that is not heard of for `patience` seconds ends the run. If MPI itself does not
/// return to the thread of this rank, `stuck` is called on another one, with a sentence, and should end the process.
/// Called once. Throws Error if there is no module, if MPI does not start, or if it finds another number of processes
/// than the launcher.
std::unique_ptr<Team> join_mpi_team(const Launch& launch, const std::vector<std::string>& modules, double patience,
                                    std::function<void(const std::string&)> stuck);

}  // namespace maki
