// One claim's pages, copied from begin to end without the interpreter's lock: what a worker's copy
// thread does.
//
//   Run     begin ─► copy page by page into (or out of) the engine's blocks
//   Finish  end, and its answer
//   Execute both, and for a load: good only once the node knows that it has ended
//   Stop    from any other thread: once it has returned, no piece is read or written any more
//
//   kIdle ──Run──► kBeginning ──► kCopying ──► kCopied ──Finish──► kFinished
//     └──── Stop, at any time: what was not copied until then is not copied
//
// Invariants:
//  1. The engine's blocks are touched only in kCopying, and never after Stop has returned. Stop
//     waits for the chunk that a copy is in (4 KiB), never for the node. In a fork's child nothing
//     is copied: there it does nothing.
//  2. A load is good only if every page that was asked for was copied and had its checksum.
//  3. The hold is given back, whatever happens: by Finish, or with the job.
//
// Threads: Run and Finish by the thread that uses the client; Stop and the readers by any.
#ifndef PANDO_CLIENT_PYTHON_COPY_JOB_H_
#define PANDO_CLIENT_PYTHON_COPY_JOB_H_

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/client.h"
#include "client/python/kv_layout.h"

namespace pando::python {

struct CopyResult {
  client::Code code = client::Code::kLost;  // of the begin
  std::string message;
  bool store = false;
  bool stopped = false;  // by Stop, by the deadline, or because the session was lost
  uint64_t pages = 0;    // copied, and right
  uint64_t bad = 0;      // copied, and found to be not what was stored
  uint64_t bytes = 0;    // of the pages copied
  int64_t begin_ns = 0;  // what the node took to answer
  int64_t copy_ns = 0;
  int64_t copy_cpu_ns = 0;                         // of the processor
  client::Code end_code = client::Code::kUnknown;  // of the end
  bool good(uint64_t wanted) const { return code == client::Code::kOk && pages == wanted; }
};

class CopyJob {
 public:
  // blocks[i]: the engine's block for the claim's block first_block + i. All of them are wanted:
  // a claim that does not have them is no copy.
  CopyJob(client::Claim claim, std::shared_ptr<const KvLayout> layout, uint32_t first_block,
          std::vector<uint32_t> blocks);

  // Copies up to `deadline_ns`, looked at between pages; the node may take `call_ns` to answer.
  CopyResult Run(client::Client* client, int64_t deadline_ns, int64_t call_ns);
  // Tells the node that the pages are not touched any more; a store's become everybody's. What has
  // not run gives nothing back: then kUnknown.
  client::EndResult Finish(client::Client* client, int64_t deadline_ns);
  // Run, then Finish if there is something to end. Begin and end may take `call_ns` each.
  CopyResult Execute(client::Client* client, int64_t deadline_ns, int64_t call_ns);
  void Stop();

  const client::Claim& claim() const { return claim_; }
  size_t wanted() const { return blocks_.size(); }

 private:
  bool Enter();  // false: stopped
  void Leave();
  bool stopped() const;
  void Copy(int64_t deadline_ns, CopyResult* result);

  const client::Claim claim_;
  const std::shared_ptr<const KvLayout> layout_;
  const uint32_t first_block_;
  const std::vector<uint32_t> blocks_;
  const pid_t process_;

  mutable std::mutex mutex_;
  std::condition_variable left_;
  bool stop_ = false;     // by mutex_
  bool copying_ = false;  // by mutex_
  client::Hold hold_;     // its moves by mutex_, copies through it by Run alone
};

}  // namespace pando::python

#endif  // PANDO_CLIENT_PYTHON_COPY_JOB_H_
