; A call that is made of calls of compiled kernels, one after the other, each on some rows of the arguments. `parts.py`
; writes the plan: how many calls, how many arguments; then for each call the addresses of its code, of what binds
; constants per call (null: nothing does) and of its workspace, and for each argument how many bytes in it begins.

define void @parts(ptr %arguments, ptr %plan, ptr %sizes) {
begin:
  %calls = load i64, ptr %plan
  %count.at = getelementptr i64, ptr %plan, i64 1
  %count = load i64, ptr %count.at
  %own = alloca ptr, i64 %count
  %first = getelementptr i64, ptr %plan, i64 2
  br label %next
next:
  %n = phi i64 [ 0, %begin ], [ %n.next, %done ]
  %at = phi ptr [ %first, %begin ], [ %behind, %done ]
  %left = icmp ult i64 %n, %calls
  br i1 %left, label %call, label %out
call:
  %code = load ptr, ptr %at
  %bind.at = getelementptr i64, ptr %at, i64 1
  %bind = load ptr, ptr %bind.at
  %workspace.at = getelementptr i64, ptr %at, i64 2
  %workspace = load ptr, ptr %workspace.at
  %offsets = getelementptr i64, ptr %at, i64 3
  br label %argument
argument:
  %i = phi i64 [ 0, %call ], [ %i.next, %shift ]
  %some = icmp ult i64 %i, %count
  br i1 %some, label %shift, label %ready
shift:
  %offset.at = getelementptr i64, ptr %offsets, i64 %i
  %offset = load i64, ptr %offset.at
  %given.at = getelementptr ptr, ptr %arguments, i64 %i
  %given = load ptr, ptr %given.at
  %moved = getelementptr i8, ptr %given, i64 %offset
  %own.at = getelementptr ptr, ptr %own, i64 %i
  store ptr %moved, ptr %own.at
  %i.next = add i64 %i, 1
  br label %argument
ready:
  %binds = icmp ne ptr %bind, null
  br i1 %binds, label %bound, label %done
bound:
  call void %bind(ptr %own, ptr %workspace, ptr %sizes)
  br label %done
done:
  call void %code(ptr %own, ptr %workspace, ptr %sizes)
  %n.next = add i64 %n, 1
  %behind = getelementptr i64, ptr %offsets, i64 %count
  br label %next
out:
  ret void
}
