// Whether what an engine asks can be sent at all: the limits and forms of client.proto. Stateless.
#ifndef PANDO_CLIENT_PROMPT_CHECK_H_
#define PANDO_CLIENT_PROMPT_CHECK_H_

#include <span>
#include <string>
#include <string_view>

#include "client/client.h"

namespace pando::client {

struct Objection {
  Code code = Code::kOk;
  std::string message;  // what was found, what is allowed
  bool ok() const { return code == Code::kOk; }
};

Objection CheckPrompt(const Prompt& prompt);
Objection CheckTokenCount(size_t tokens);
Objection CheckClaims(std::span<const Claim> claims);
Objection CheckOptions(const Options& options);

// Protobuf's `string` fields must be UTF-8, or the whole frame is refused.
bool IsUtf8(std::string_view text);

}  // namespace pando::client

#endif  // PANDO_CLIENT_PROMPT_CHECK_H_
