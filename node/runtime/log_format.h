// How a decision is written down: one line, `event key=value key="a value"`.
//
// Values that could be mistaken (spaces, quotes, '=', control characters, bytes that are not ASCII)
// are quoted and escaped, so that a name from outside can forge neither a field nor a line.
// Stateless; any thread.
#ifndef PANDO_NODE_RUNTIME_LOG_FORMAT_H_
#define PANDO_NODE_RUNTIME_LOG_FORMAT_H_

#include <string>
#include <string_view>

#include "node/core/node_core.h"

namespace pando::runtime {

// Appends `value`, quoted if it must be. At most 1 KiB of it is kept.
void AppendValue(std::string_view value, std::string* out);
std::string FormatLine(const LogLine& line);

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_LOG_FORMAT_H_
