// Part of the small libraries with the names of libcudart, which programs have before the C
// library. (The dynamic linker takes unversioned definitions for versioned references.)
#include <dlfcn.h>
#include <pthread.h>

#include <cerrno>

#include "stand_ins/cudart/making_threads.h"

#pragma weak warpstack_cudart_create_thread
#pragma weak warpstack_cudart_join_thread

extern "C" __attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
    void* argument) noexcept {
  static const auto create = reinterpret_cast<CreateThread>(::dlsym(RTLD_NEXT, "pthread_create"));
  if (create == nullptr) return EAGAIN;
  if (warpstack_cudart_create_thread == nullptr) return create(thread, attributes, start, argument);
  return warpstack_cudart_create_thread(create, thread, attributes, start, argument);
}

// A thread may be cancelled here.
extern "C" __attribute__((visibility("default"))) int pthread_join(pthread_t thread,
                                                                   void** result) {
  static const auto join = reinterpret_cast<JoinThread>(::dlsym(RTLD_NEXT, "pthread_join"));
  if (join == nullptr) return ESRCH;
  if (warpstack_cudart_join_thread == nullptr) return join(thread, result);
  return warpstack_cudart_join_thread(join, thread, result);
}
