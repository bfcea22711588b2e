// The targets whose inputs are scripts.
#include <string>

#include "radix/base/check.h"
#include "tests/fuzz/script.h"
#include "tests/fuzz/targets.h"

namespace pando::fuzz {
namespace {

void Run(Input input, bool peers) {
  const std::string broken = RunScript(DecodeScript(input, peers));
  PANDO_CHECK(broken.empty()) << broken;
}

}  // namespace

void ClientRequests(Input input) {
  Run(input, /*peers=*/false);
}

void PeerCalls(Input input) {
  Run(input, /*peers=*/true);
}

}  // namespace pando::fuzz
