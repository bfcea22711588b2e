#include "node/core/context.h"

namespace pando {

void CoreContext::Log(LogLine::Level level, std::string event, LogFields fields) {
  outputs->emplace_back(LogLine{level, std::move(event), std::move(fields)});
}

}  // namespace pando
