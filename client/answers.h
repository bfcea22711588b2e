// Reads the node's answers. Everything in one is checked before anybody uses it; each function
// returns an empty string, or what the node did wrong (then the session must end).
// Stateless.
#ifndef PANDO_CLIENT_ANSWERS_H_
#define PANDO_CLIENT_ANSWERS_H_

#include <memory>
#include <string>

#include "client/client.h"
#include "client/frame_writer.h"
#include "client/pending.h"
#include "client/session_memory.h"

namespace pando::client {

// What answers are checked against.
struct AnswerContext {
  const Options* options;
  std::shared_ptr<const SessionMemory> memory;
  uint64_t boot_id = 0;
};

Code ToCode(pb::Code code);

std::string ReadAnswer(const pb::NodeMessage& message, const AcquireCall& call,
                       const AnswerContext& context, AcquireResult* result);
std::string ReadAnswer(const pb::NodeMessage& message, const AwaitCall& call,
                       const AnswerContext& context, AwaitResult* result);
std::string ReadAnswer(const pb::NodeMessage& message, const ProbeCall& call,
                       const AnswerContext& context, ProbeResult* result);
std::string ReadAnswer(const pb::NodeMessage& message, const ReserveCall& call,
                       const AnswerContext& context, ReserveResult* result);
// Every claim asked for is answered once; a claim with kOk becomes a hold, to be ended.
std::string ReadAnswer(const pb::NodeMessage& message, const BeginCall& call,
                       const AnswerContext& context, BeginResult* result);
std::string ReadAnswer(const pb::NodeMessage& message, const EndCall& call,
                       const AnswerContext& context, EndResult* result);
std::string ReadAnswer(const pb::NodeMessage& message, const SettleCall& call,
                       const AnswerContext& context, SettleResult* result);

}  // namespace pando::client

#endif  // PANDO_CLIENT_ANSWERS_H_
