// What every process of Pando that speaks UCX sets up around it.
//
// Linking this file also replaces libc's sendmsg for UCX: a connection that broke is never told of
// by a write. UCX 1.13 over TCP completes a send twice, and aborts, when it is the write that finds
// out (tcp_ep.c, uct_tcp_ep_sendv); the read of the same socket tells it too, and is handled well.
#ifndef PANDO_TRANSFER_UCX_UCX_DEFAULTS_H_
#define PANDO_TRANSFER_UCX_UCX_DEFAULTS_H_

namespace pando::transfer {

// Sets UCX's variables in this process's environment, before its first context. The operator's own
// values stand. Peers should agree on them: an operation that one side allows and the other does
// not ends the other's process (UCX 1.13). Not beside a thread that reads the environment.
void SetUcxDefaults();

}  // namespace pando::transfer

#endif  // PANDO_TRANSFER_UCX_UCX_DEFAULTS_H_
