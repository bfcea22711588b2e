// Settings that libraries read from the environment before main: the program starts itself again
// with them, once.
#ifndef PANDO_NODE_RUNTIME_ENVIRONMENT_H_
#define PANDO_NODE_RUNTIME_ENVIRONMENT_H_

namespace pando::runtime {

// To be called first in main, before any thread. Adds to the environment what is missing of
//
//   GLIBC_TUNABLES=glibc.malloc.hugetlb=1    malloc asks for huge pages: in an index of a million
//                                            runs a third of an eviction's time is page-table
//                                            misses
//
// and, if that changed anything, executes this program anew with the same arguments (same process,
// same descriptors). Variables that the operator has set stand. Goes on without if that fails.
void EnsureEnvironment(char** argv);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_ENVIRONMENT_H_
