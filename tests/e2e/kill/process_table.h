// What /proc says of processes. Stateless.
#ifndef PANDO_TESTS_E2E_KILL_PROCESS_TABLE_H_
#define PANDO_TESTS_E2E_KILL_PROCESS_TABLE_H_

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <vector>

namespace pando::e2e {

// Children of a process, by the name of their program (its first 15 characters); empty: all.
std::vector<pid_t> ChildrenOf(pid_t parent, const std::string& name = "");
bool Lives(pid_t pid);  // neither gone nor a zombie
size_t DescriptorsOf(pid_t pid);
// Memory with a name in /dev/shm, which would outlive the process.
bool MapsNamedMemory(pid_t pid);

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_KILL_PROCESS_TABLE_H_
