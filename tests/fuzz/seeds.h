// The first inputs of the fuzz targets, made by the encoders of what they are. Immutable values.
#ifndef PANDO_TESTS_FUZZ_SEEDS_H_
#define PANDO_TESTS_FUZZ_SEEDS_H_

#include <string>
#include <vector>

namespace pando::fuzz {

struct Seed {
  std::string target, name, bytes;
};

std::vector<Seed> ScriptSeeds();   // client_requests, peer_calls
std::vector<Seed> MessageSeeds();  // local_frames, peer_messages, transfer_messages
std::vector<Seed> FileSeeds();     // trace_file, config_file

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_SEEDS_H_
