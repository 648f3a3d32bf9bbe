; Threads that share the work of a kernel: `fork` runs a function for every instance, on the caller and on those threads
; that are free, and comes back when all are done. Instances are claimed one by one, so that nobody waits for a thread
; that has not begun; a caller that finds the threads at work for another one does all of them itself. Threads look for
; work for some microseconds, then sleep. `pool.py` says which C functions and numbers these are.

%State = type { i64, [56 x i8], i64, [56 x i8], ptr, ptr, i64, [40 x i8], i32, i32, i32, i32, i32, [44 x i8], [@MOST x i64] } ; ticket, done, function, words, instances, busy, sleeping, wanted, started, leaving, threads

@state = global %State zeroinitializer, align 64
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_yield()
declare i64 @syscall(i64, ...)
@PAUSES

; The ticket: in its upper half how many forks there were, in its lower half the next instance to be claimed. All ones
; in the lower half: there is none, and there will be none before the next fork. Who claims has read function and words
; between reading the ticket and exchanging it; they change only while the ticket is closed.

; Claims and does instances until there is none left. Returns the ticket it saw last.
define internal i64 @work() nounwind {
entry:
  %n.at = getelementptr %State, ptr @state, i64 0, i32 6
  %f.at = getelementptr %State, ptr @state, i64 0, i32 4
  %w.at = getelementptr %State, ptr @state, i64 0, i32 5
  %done.at = getelementptr %State, ptr @state, i64 0, i32 2
  br label %look
look:
  %ticket = load atomic i64, ptr @state acquire, align 8
  %next = and i64 %ticket, 4294967295
  %n = load atomic i64, ptr %n.at monotonic, align 8
  %some = icmp ult i64 %next, %n
  br i1 %some, label %claim, label %none
claim:
  %f = load atomic ptr, ptr %f.at monotonic, align 8
  %words = load atomic ptr, ptr %w.at monotonic, align 8
  %following = add i64 %ticket, 1
  %pair = cmpxchg ptr @state, i64 %ticket, i64 %following acq_rel acquire
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %run, label %look
run:
  call void %f(ptr %words, i64 %next)
  %was = atomicrmw add ptr %done.at, i64 1 release
  br label %look
none:
  ret i64 %ticket
}

define internal ptr @thread(ptr %unused) nounwind {
entry:
  %sleeping.at = getelementptr %State, ptr @state, i64 0, i32 9
  %leaving.at = getelementptr %State, ptr @state, i64 0, i32 12
  %generation.at = getelementptr i8, ptr @state, i64 4
  br label %again
again:
  %seen = call i64 @work() ; the ticket of those who want the threads to end comes after the word that they do
  %forks = lshr i64 %seen, 32
  %leaving = load atomic i32, ptr %leaving.at acquire, align 4
  %leave = icmp ne i32 %leaving, 0
  br i1 %leave, label %out, label %spin
spin:
  %turn = phi i64 [ 0, %again ], [ %turn.next, %pause ]
  %now = load atomic i64, ptr @state monotonic, align 8
  %now.forks = lshr i64 %now, 32
  %same = icmp eq i64 %now.forks, %forks
  br i1 %same, label %wait, label %again
wait:
  %more = icmp ult i64 %turn, @SPIN
  br i1 %more, label %pause, label %sleep
pause:
  @PAUSE
  %turn.next = add i64 %turn, 1
  br label %spin
sleep:
  %value = trunc i64 %forks to i32
  %x = atomicrmw add ptr %sleeping.at, i32 1 seq_cst
  %slept = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr %generation.at, i64 128, i32 %value, ptr null, ptr null, i64 0)
  %y = atomicrmw sub ptr %sleeping.at, i32 1 seq_cst
  br label %again
out:
  ret ptr null
}

; Starts the threads that are wanted and not there yet; where the system gives no more, no more are wanted.
define internal void @start() nounwind noinline {
entry:
  %wanted.at = getelementptr %State, ptr @state, i64 0, i32 10
  %started.at = getelementptr %State, ptr @state, i64 0, i32 11
  br label %next
next:
  %started = load i32, ptr %started.at
  %wanted = load i32, ptr %wanted.at
  %more = icmp ult i32 %started, %wanted
  br i1 %more, label %one, label %out
one:
  %at = getelementptr %State, ptr @state, i64 0, i32 14, i32 %started
  %failed = call i32 @pthread_create(ptr %at, ptr null, ptr @thread, ptr null)
  %bad = icmp ne i32 %failed, 0
  br i1 %bad, label %enough, label %good
enough:
  store i32 %started, ptr %wanted.at
  ret void
good:
  %following = add i32 %started, 1
  store i32 %following, ptr %started.at
  br label %next
out:
  ret void
}

; Runs f(words, i) for every i below n.
define void @fork(ptr %f, ptr %words, i64 %n) nounwind {
entry:
  %done.at = getelementptr %State, ptr @state, i64 0, i32 2
  %f.at = getelementptr %State, ptr @state, i64 0, i32 4
  %w.at = getelementptr %State, ptr @state, i64 0, i32 5
  %n.at = getelementptr %State, ptr @state, i64 0, i32 6
  %busy.at = getelementptr %State, ptr @state, i64 0, i32 8
  %sleeping.at = getelementptr %State, ptr @state, i64 0, i32 9
  %wanted.at = getelementptr %State, ptr @state, i64 0, i32 10
  %started.at = getelementptr %State, ptr @state, i64 0, i32 11
  %generation.at = getelementptr i8, ptr @state, i64 4
  %wanted = load atomic i32, ptr %wanted.at monotonic, align 4
  %any = icmp ne i32 %wanted, 0
  br i1 %any, label %take, label %alone
take:
  %pair = cmpxchg ptr %busy.at, i32 0, i32 1 acquire monotonic
  %free = extractvalue { i32, i1 } %pair, 1
  br i1 %free, label %ours, label %alone
ours:
  %started = load i32, ptr %started.at
  %enough = icmp uge i32 %started, %wanted
  br i1 %enough, label %publish, label %first
first:
  call void @start()
  br label %publish
publish:
  store atomic ptr %f, ptr %f.at monotonic, align 8
  store atomic ptr %words, ptr %w.at monotonic, align 8
  store atomic i64 %n, ptr %n.at monotonic, align 8
  store atomic i64 0, ptr %done.at monotonic, align 8
  %old = load atomic i64, ptr @state monotonic, align 8
  %forks = lshr i64 %old, 32
  %forks.next = add i64 %forks, 1
  %ticket = shl i64 %forks.next, 32
  %x = atomicrmw xchg ptr @state, i64 %ticket seq_cst
  %sleeping = load atomic i32, ptr %sleeping.at seq_cst, align 4
  %wake = icmp ne i32 %sleeping, 0
  br i1 %wake, label %call, label %join
call:
  %woken = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr %generation.at, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  br label %join
join:
  %last = call i64 @work()
  br label %wait
wait:
  %turn = phi i64 [ 0, %join ], [ %turn.next, %pause ], [ %turn.next, %yield ]
  %done = load atomic i64, ptr %done.at acquire, align 8
  %all = icmp eq i64 %done, %n
  br i1 %all, label %end, label %spin
spin:
  %turn.next = add i64 %turn, 1
  %long = icmp ugt i64 %turn, @SPIN
  br i1 %long, label %yield, label %pause
pause:
  @PAUSE
  br label %wait
yield:
  %z = call i32 @sched_yield()
  br label %wait
end:
  %closed = or i64 %ticket, 4294967295
  store atomic i64 %closed, ptr @state release, align 8
  store atomic i32 0, ptr %busy.at release, align 4
  ret void
alone:
  call void @serial(ptr %f, ptr %words, i64 %n)
  ret void
}

define void @serial(ptr %f, ptr %words, i64 %n) nounwind {
entry:
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %run ]
  %more = icmp ult i64 %i, %n
  br i1 %more, label %run, label %out
run:
  call void %f(ptr %words, i64 %i)
  %i.next = add i64 %i, 1
  br label %next
out:
  ret void
}

; The threads end, once they are at work for nobody; calls from then on have none.
define void @stop() nounwind {
entry:
  %busy.at = getelementptr %State, ptr @state, i64 0, i32 8
  %started.at = getelementptr %State, ptr @state, i64 0, i32 11
  %leaving.at = getelementptr %State, ptr @state, i64 0, i32 12
  %generation.at = getelementptr i8, ptr @state, i64 4
  br label %take
take:
  %turn = phi i64 [ 0, %entry ], [ %turn.next, %again ]
  %pair = cmpxchg ptr %busy.at, i32 0, i32 1 acquire monotonic
  %free = extractvalue { i32, i1 } %pair, 1
  br i1 %free, label %ours, label %again
again:
  %turn.next = add i64 %turn, 1
  %z = call i32 @sched_yield()
  %more = icmp ult i64 %turn, @PATIENCE
  br i1 %more, label %take, label %out
ours:
  store atomic i32 1, ptr %leaving.at seq_cst, align 4
  %old = load atomic i64, ptr @state monotonic, align 8
  %forks = lshr i64 %old, 32
  %forks.next = add i64 %forks, 1
  %open = shl i64 %forks.next, 32
  %closed = or i64 %open, 4294967295
  %x = atomicrmw xchg ptr @state, i64 %closed seq_cst
  %woken = call i64 (i64, ...) @syscall(i64 @FUTEX, ptr %generation.at, i64 129, i32 2147483647, ptr null, ptr null, i64 0)
  br label %join
join:
  %i = phi i32 [ 0, %ours ], [ %i.next, %one ]
  %started = load i32, ptr %started.at
  %left = icmp ult i32 %i, %started
  br i1 %left, label %one, label %out
one:
  %at = getelementptr %State, ptr @state, i64 0, i32 14, i32 %i
  %id = load i64, ptr %at
  %r = call i32 @pthread_join(i64 %id, ptr null)
  %i.next = add i32 %i, 1
  br label %join
out:
  ret void
}
