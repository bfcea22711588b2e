// The node's log: one line a decision, on stderr.
//
//   2026-11-30T01:22:33.123Z info replica.attached replica=engine-7 shard=0
//
// Writing never blocks the writer: lines wait in a bounded queue for a thread of the log's own, and
// if whoever reads stderr has stopped, lines are dropped, and counted in one that is not. The log's
// end waits for nobody either. Thread-safe.
#ifndef PANDO_NODE_RUNTIME_LOG_H_
#define PANDO_NODE_RUNTIME_LOG_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "node/core/node_core.h"

namespace pando::runtime {

class Log {
 public:
  explicit Log(LogLine::Level least);
  ~Log();  // writes what waits, as far as somebody reads it
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void Write(const LogLine& line);
  void Write(LogLine::Level level, std::string event,
             std::vector<std::pair<std::string, std::string>> fields) {
    Write(LogLine{level, std::move(event), std::move(fields)});
  }
  // Past the queue and every lock of a log, for the last line of a process that ends here and now.
  // Waits for a reader only a moment.
  static void WriteLast(const LogLine& line);

 private:
  struct Impl;
  const LogLine::Level least_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::runtime

#endif  // PANDO_NODE_RUNTIME_LOG_H_
