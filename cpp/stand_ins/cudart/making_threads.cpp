#include "stand_ins/cudart/making_threads.h"

#include <sched.h>

#include <atomic>
#include <new>

#include "stand_ins/log/operation_log.h"

namespace warpstack::cudart {
namespace {

/// A thread that the program has made. Places are used again and never freed: a thread begins
/// before sanitizers know it, so that it must not call the allocator, and a child of fork() may
/// come at any time, so that there is no lock.
struct MadeThread {
  ThreadNotes notes;
  StartOfThread start = nullptr;
  void* argument = nullptr;
  RowOfProcess begins_after;
  pthread_t* told = nullptr;  ///< where the program wants its number
  enum State : int { unknown, being_told, known };
  std::atomic<int> state{unknown};
  std::atomic<bool> is_made{false};  ///< the one who makes it is done
  std::atomic<pthread_t> id{};       ///< until it is joined
  MadeThread* next = nullptr;
};

std::atomic<MadeThread*> all_threads{nullptr};

MadeThread* new_thread() {
  for (MadeThread* place = all_threads; place != nullptr; place = place->next) {
    if (place->notes.is_used.exchange(true)) continue;
    place->notes.last = {};
    place->is_made = false;
    place->state = MadeThread::unknown;
    return place;
  }
  auto* const place = new (std::nothrow) MadeThread;
  if (place == nullptr) return nullptr;
  place->next = all_threads;
  while (!all_threads.compare_exchange_weak(place->next, place)) {
  }
  return place;
}

/// Takes the place of a thread, which has it no longer, or null.
MadeThread* taken(pthread_t id) {
  for (MadeThread* place = all_threads; place != nullptr; place = place->next) {
    pthread_t expected = id;
    if (place->is_made && place->id.compare_exchange_strong(expected, pthread_t{})) return place;
  }
  return nullptr;
}

/// Tells the program the number of a thread, before the thread goes on and before it is made: it
/// may read the number, or end, with the place of the number, before the one who makes it goes on.
void tell(MadeThread& made, pthread_t id) {
  int expected = MadeThread::unknown;
  if (made.state.compare_exchange_strong(expected, MadeThread::being_told)) {
    *made.told = id;
    made.id = id;
    made.state = MadeThread::known;
  }
  while (made.state != MadeThread::known) ::sched_yield();
}

/// Exceptions, cancellation and pthread_exit pass through.
void* begin_thread(void* place) {
  auto* const made = static_cast<MadeThread*>(place);
  tell(*made, ::pthread_self());
  LogThread& thread = log_thread();
  thread.begins_after = made->begins_after;
  thread.has_begun = true;
  thread.notes = &made->notes;
  return made->start(made->argument);
}

}  // namespace
}  // namespace warpstack::cudart

int warpstack_cudart_create_thread(CreateThread create, pthread_t* thread,
                                   const pthread_attr_t* attributes, StartOfThread start,
                                   void* argument) {
  using namespace warpstack::cudart;
  MadeThread* const made = new_thread();
  if (made == nullptr) return create(thread, attributes, start, argument);
  made->start = start;
  made->argument = argument;
  made->begins_after = last_row_of_process();
  made->told = thread;
  pthread_t id{};
  const int error = create(&id, attributes, begin_thread, made);
  if (error != 0) {
    made->notes.is_used = false;
    return error;
  }
  // A thread that nobody has joined had the same number before: it was detached.
  if (MadeThread* const ended = taken(id)) ended->notes.is_used = false;
  tell(*made, id);
  made->is_made = true;
  return 0;
}

int warpstack_cudart_join_thread(JoinThread join, pthread_t thread, void** result) {
  using namespace warpstack::cudart;
  MadeThread* const made = taken(thread);  // later another thread may have its number
  ThreadJoin waiting;
  const int error = join(thread, result);
  if (made == nullptr) return error;
  if (error == 0) {
    waiting.end(made->notes);
  } else {
    made->id = thread;
  }
  return error;
}
