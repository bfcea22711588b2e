// Tells a socket that belongs to something else than an engine's node. Any thread.
#ifndef PANDO_CLIENT_CTL_OTHER_PROTOCOL_H_
#define PANDO_CLIENT_CTL_OTHER_PROTOCOL_H_

#include <string>

namespace pando::ctl {

// True if what listens at the socket, unix:PATH or PATH, speaks HTTP/2 as soon as somebody
// connects: that is what a gRPC server does, such as a node's admin socket. A node's own socket
// waits to be spoken to. Takes at most 200 ms.
bool SpeaksHttp2(const std::string& socket);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_OTHER_PROTOCOL_H_
