// gRPC writes lines of its own to stderr, of what its callers are told anyway.
#ifndef PANDO_NODE_CONTROL_QUIET_H_
#define PANDO_NODE_CONTROL_QUIET_H_

namespace pando::control {

// Not any more, unless the environment names GRPC_VERBOSITY. Before anything else of gRPC.
void QuietGrpc();

}  // namespace pando::control

#endif  // PANDO_NODE_CONTROL_QUIET_H_
