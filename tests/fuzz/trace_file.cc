// A trace, plain or compressed: what is read is what its own text says again.
#include <nlohmann/json.hpp>
#include <string>

#include "client/ctl/trace.h"
#include "tests/fuzz/input_file.h"
#include "tests/fuzz/targets.h"

namespace pando::fuzz {
namespace {

bool Same(const ctl::TraceRequest& a, const ctl::TraceRequest& b) {
  return a.timestamp_ms == b.timestamp_ms && a.input_length == b.input_length &&
         a.output_length == b.output_length && a.hash_ids == b.hash_ids;
}

std::string TextOf(const ctl::TraceRequest& request) {
  return nlohmann::json{{"timestamp", request.timestamp_ms},
                        {"input_length", request.input_length},
                        {"output_length", request.output_length},
                        {"hash_ids", request.hash_ids}}
             .dump() +
         "\n";
}

}  // namespace

void TraceFile(Input input) {
  const InputFile file(input);
  const auto trace = ctl::ReadTrace(file.path());
  if (!trace.ok()) {
    PANDO_CHECK(!trace.status().message().empty()) << "a refusal that does not say why";
    return;
  }
  std::string text;
  for (const ctl::TraceRequest& request : *trace) {
    PANDO_CHECK(request.shared_ids() <= request.hash_ids.size()) << "ids that there are not";
    text += TextOf(request);
  }
  const InputFile said({reinterpret_cast<const uint8_t*>(text.data()), text.size()});
  const auto again = ctl::ReadTrace(said.path());
  PANDO_CHECK(again.ok() &&
              std::equal(trace->begin(), trace->end(), again->begin(), again->end(), Same))
      << "a trace reads otherwise when it is written again: " << again.status().message();
  const auto first = ctl::ReadTrace(file.path(), 1);
  PANDO_CHECK(first.ok() && first->size() == 1) << "the first request alone cannot be read";
}

}  // namespace pando::fuzz
