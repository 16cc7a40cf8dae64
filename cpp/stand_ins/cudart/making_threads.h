#pragma once

#include <pthread.h>

/// Threads of programs: where one is made, and where one is joined, the log notes the last row. The
/// small libraries with the names of libcudart have functions pthread_create and pthread_join,
/// which programs that are linked to them call instead of those of the C library.
extern "C" {

using StartOfThread = void* (*)(void*);
using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, StartOfThread, void*);
using JoinThread = int (*)(pthread_t, void**);

/// Makes a thread with `create`, the C library's function. Weak: without it threads are made as
/// ever.
__attribute__((visibility("default"))) int warpstack_cudart_create_thread(
    CreateThread create, pthread_t* thread, const pthread_attr_t* attributes, StartOfThread start,
    void* argument);
/// The same for the end of a thread.
__attribute__((visibility("default"))) int warpstack_cudart_join_thread(JoinThread join,
                                                                        pthread_t thread,
                                                                        void** result);
}
