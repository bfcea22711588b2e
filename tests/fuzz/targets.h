// The fuzz targets: what each does with any bytes. Whoever finds something broken stops the process
// and says what (PANDO_CHECK). Inputs are kept in tests/data/fuzz/NAME. Stateless.
#ifndef PANDO_TESTS_FUZZ_TARGETS_H_
#define PANDO_TESTS_FUZZ_TARGETS_H_

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace pando::fuzz {

using Input = std::span<const uint8_t>;

void LocalFrames(Input input);       // a session's stream: frames, messages, attach, step
void ClientRequests(Input input);    // a script of engines (script.h)
void PeerMessages(Input input);      // messages between nodes: decoded, and what they do
void PeerCalls(Input input);         // a script of engines and peers (script.h)
void TransferMessages(Input input);  // active messages, and those of the transfer process
void TraceFile(Input input);         // pandoctl's traces
void ConfigFile(Input input);        // pando-node's file and flags

struct Target {
  std::string_view name;
  void (*run)(Input);
};
inline constexpr std::array<Target, 7> kTargets = {{
    {"local_frames", LocalFrames},
    {"client_requests", ClientRequests},
    {"peer_messages", PeerMessages},
    {"peer_calls", PeerCalls},
    {"transfer_messages", TransferMessages},
    {"trace_file", TraceFile},
    {"config_file", ConfigFile},
}};

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_TARGETS_H_
