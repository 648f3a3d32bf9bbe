; How Python calls a compiled kernel without going through Python: vectorcall functions (PEP 590) for all kernels: of one
; shape (`quick`), of those among some that the arguments fit (`several`), of none (`thorough`).
; What it checks and calls stands in a record of the object that is called; `vectorcall.py` has the same types, and
; fills @RECORD, the record's distance from the object's begin, and @SHAPES. Arrays that are not just as the code wants them
; (another type, shape or order, an overlap with something written, a missing argument) go to the Python function
; `thorough`, which copies, refuses, explains.

%Array = type { i64, ptr, ptr, i32, ptr, ptr, ptr, ptr, i32 } ; NumPy's: references, type, data, rank, shape, strides, base, dtype, flags
%Tuple = type { i64, ptr, i64, [0 x ptr] }                    ; CPython's: references, type, length, items
%Spec = type { ptr, i32, i32, ptr, i64, i64, ptr, ptr }       ; dtype, rank, flags that are set, shape, bytes, place among the pointers, name, of what is written who makes it (like PyArray_NewFromDescr), else null
%Record = type { i64, i64, i64, ptr, ptr, ptr, ptr, ptr, ptr, ptr, i32, i32 } ; positional arguments, with outputs, pointers, those of bound arrays, specs, call, bind, workspace, sizes, thorough, whether the lock is let go, whether the workspace is in use

%Shapes = type { ptr, [@SHAPES x ptr] } ; the Python function for what fits no record, the records: null after the last

@PyArray_Type = external global i8
@_Py_NoneStruct = external global i8
declare ptr @PyObject_Vectorcall(ptr, ptr, i64, ptr)
declare ptr @PyTuple_New(i64)
declare i32 @PyUnicode_Compare(ptr, ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

; Whether an object is an array just as a spec wants it.
define internal i1 @suits(ptr %a, ptr %spec) {
  %type.at = getelementptr %Array, ptr %a, i64 0, i32 1
  %type = load ptr, ptr %type.at
  %array = icmp eq ptr %type, @PyArray_Type
  br i1 %array, label %head, label %no
head:
  %dtype.at = getelementptr %Array, ptr %a, i64 0, i32 7
  %dtype = load ptr, ptr %dtype.at
  %dtype.want = load ptr, ptr %spec
  %dtype.same = icmp eq ptr %dtype, %dtype.want
  %rank.at = getelementptr %Array, ptr %a, i64 0, i32 3
  %rank = load i32, ptr %rank.at
  %rank.want.at = getelementptr %Spec, ptr %spec, i64 0, i32 1
  %rank.want = load i32, ptr %rank.want.at
  %rank.same = icmp eq i32 %rank, %rank.want
  %flags.at = getelementptr %Array, ptr %a, i64 0, i32 8
  %flags = load i32, ptr %flags.at
  %flags.want.at = getelementptr %Spec, ptr %spec, i64 0, i32 2
  %flags.want = load i32, ptr %flags.want.at
  %flags.set = and i32 %flags, %flags.want
  %flags.same = icmp eq i32 %flags.set, %flags.want
  %both = and i1 %dtype.same, %rank.same
  %three = and i1 %both, %flags.same
  br i1 %three, label %shape, label %no
shape:
  %shape.at = getelementptr %Array, ptr %a, i64 0, i32 4
  %shape.is = load ptr, ptr %shape.at
  %shape.want.at = getelementptr %Spec, ptr %spec, i64 0, i32 3
  %shape.want = load ptr, ptr %shape.want.at
  br label %dimension
dimension:
  %d = phi i32 [ 0, %shape ], [ %d.next, %compared ]
  %more = icmp slt i32 %d, %rank
  br i1 %more, label %compare, label %yes
compare:
  %n.at = getelementptr i64, ptr %shape.is, i32 %d
  %n = load i64, ptr %n.at
  %n.want.at = getelementptr i64, ptr %shape.want, i32 %d
  %n.want = load i64, ptr %n.want.at
  %n.same = icmp eq i64 %n, %n.want
  br i1 %n.same, label %compared, label %no
compared:
  %d.next = add i32 %d, 1
  br label %dimension
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether an array that is written and was given shares bytes with another that was given.
define internal i1 @clash(ptr %specs, ptr %objects, i64 %all) {
  br label %written
written:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %i.more = icmp ult i64 %i, %all
  br i1 %i.more, label %check, label %apart
check:
  %w.at = getelementptr %Spec, ptr %specs, i64 %i, i32 7
  %w = load ptr, ptr %w.at
  %is.written = icmp ne ptr %w, null
  %a.at = getelementptr ptr, ptr %objects, i64 %i
  %a = load ptr, ptr %a.at
  %is.given = icmp ne ptr %a, null
  %matters = and i1 %is.written, %is.given
  br i1 %matters, label %range, label %next
range:
  %start.at = getelementptr %Array, ptr %a, i64 0, i32 2
  %start = load i64, ptr %start.at
  %bytes.at = getelementptr %Spec, ptr %specs, i64 %i, i32 4
  %bytes = load i64, ptr %bytes.at
  %end = add i64 %start, %bytes
  br label %other
other:
  %j = phi i64 [ 0, %range ], [ %j.next, %passed ]
  %j.more = icmp ult i64 %j, %all
  br i1 %j.more, label %against, label %next
against:
  %b.at = getelementptr ptr, ptr %objects, i64 %j
  %b = load ptr, ptr %b.at
  %b.given = icmp ne ptr %b, null
  %b.other = icmp ne i64 %i, %j
  %b.matters = and i1 %b.given, %b.other
  br i1 %b.matters, label %measure, label %passed
measure:
  %b.start.at = getelementptr %Array, ptr %b, i64 0, i32 2
  %b.start = load i64, ptr %b.start.at
  %b.bytes.at = getelementptr %Spec, ptr %specs, i64 %j, i32 4
  %b.bytes = load i64, ptr %b.bytes.at
  %b.end = add i64 %b.start, %b.bytes
  %before = icmp ult i64 %start, %b.end
  %after = icmp ult i64 %b.start, %end
  %meet = and i1 %before, %after
  br i1 %meet, label %yes, label %passed
passed:
  %j.next = add i64 %j, 1
  br label %other
next:
  %i.next = add i64 %i, 1
  br label %written
yes:
  ret i1 true
apart:
  ret i1 false
}

; Binds, where that is done per call, and calls.
define internal void @launch(ptr %record, ptr %pointers) {
  %workspace.at = getelementptr %Record, ptr %record, i64 0, i32 7
  %workspace = load ptr, ptr %workspace.at
  %sizes.at = getelementptr %Record, ptr %record, i64 0, i32 8
  %sizes = load ptr, ptr %sizes.at
  %bind.at = getelementptr %Record, ptr %record, i64 0, i32 6
  %bind = load ptr, ptr %bind.at
  %binds = icmp ne ptr %bind, null
  br i1 %binds, label %first, label %then
first:
  call void %bind(ptr %pointers, ptr %workspace, ptr %sizes)
  br label %then
then:
  %call.at = getelementptr %Record, ptr %record, i64 0, i32 5
  %call = load ptr, ptr %call.at
  call void %call(ptr %pointers, ptr %workspace, ptr %sizes)
  ret void
}

; vectorcallfunc of every object whose record has no code: the thorough way.
define ptr @thorough(ptr %self, ptr %args, i64 %count, ptr %names) {
  %record.at = getelementptr i8, ptr %self, i64 @RECORD
  %record = load ptr, ptr %record.at
  %thorough.at = getelementptr %Record, ptr %record, i64 0, i32 9
  %thorough = load ptr, ptr %thorough.at
  %result = call ptr @PyObject_Vectorcall(ptr %thorough, ptr %args, i64 %count, ptr %names)
  ret ptr %result
}

; vectorcallfunc of a compiled kernel.
define ptr @quick(ptr %self, ptr %args, i64 %count, ptr %names) {
  %record.at = getelementptr i8, ptr %self, i64 @RECORD
  %record = load ptr, ptr %record.at
  %tried = call { ptr, i1 } @attempt(ptr %record, ptr %args, i64 %count, ptr %names)
  %fits = extractvalue { ptr, i1 } %tried, 1
  br i1 %fits, label %done, label %slow
done:
  %result = extractvalue { ptr, i1 } %tried, 0
  ret ptr %result
slow:
  %other = call ptr @thorough(ptr %self, ptr %args, i64 %count, ptr %names)
  ret ptr %other
}

; vectorcallfunc of a kernel compiled for several shapes.
define ptr @several(ptr %self, ptr %args, i64 %count, ptr %names) {
begin:
  %shapes.at = getelementptr i8, ptr %self, i64 @RECORD
  %shapes = load ptr, ptr %shapes.at
  br label %next
next:
  %i = phi i64 [ 0, %begin ], [ %i.next, %other ]
  %more = icmp ult i64 %i, @SHAPES
  br i1 %more, label %look, label %slow
look:
  %record.at = getelementptr %Shapes, ptr %shapes, i64 0, i32 1, i64 %i
  %record = load ptr, ptr %record.at
  %known = icmp ne ptr %record, null
  br i1 %known, label %try, label %slow
try:
  %tried = call { ptr, i1 } @attempt(ptr %record, ptr %args, i64 %count, ptr %names)
  %fits = extractvalue { ptr, i1 } %tried, 1
  br i1 %fits, label %done, label %other
other:
  %i.next = add i64 %i, 1
  br label %next
done:
  %result = extractvalue { ptr, i1 } %tried, 0
  ret ptr %result
slow:
  %thorough = load ptr, ptr %shapes
  %slowly = call ptr @PyObject_Vectorcall(ptr %thorough, ptr %args, i64 %count, ptr %names)
  ret ptr %slowly
}

; Calls the code of a record where the arguments are just as it wants them: what the call returned (null: an exception),
; and whether it was made at all.
define internal { ptr, i1 } @attempt(ptr %record, ptr %args, i64 %count, ptr %names) {
begin:
  %positional = and i64 %count, 9223372036854775807 ; without PY_VECTORCALL_ARGUMENTS_OFFSET
  %wanted = load i64, ptr %record
  %all.at = getelementptr %Record, ptr %record, i64 0, i32 1
  %all = load i64, ptr %all.at
  %width.at = getelementptr %Record, ptr %record, i64 0, i32 2
  %width = load i64, ptr %width.at
  %bound.at = getelementptr %Record, ptr %record, i64 0, i32 3
  %bound = load ptr, ptr %bound.at
  %specs.at = getelementptr %Record, ptr %record, i64 0, i32 4
  %specs = load ptr, ptr %specs.at
  %releases.at = getelementptr %Record, ptr %record, i64 0, i32 10
  %releases = load i32, ptr %releases.at
  %long = icmp ne i32 %releases, 0
  %busy.at = getelementptr %Record, ptr %record, i64 0, i32 11
  %pointers = alloca ptr, i64 %width
  %objects = alloca ptr, i64 %all
  %complete = icmp ule i64 %positional, %wanted
  br i1 %complete, label %copy, label %slow
copy:
  %copied = shl i64 %width, 3
  call void @llvm.memcpy.p0.p0.i64(ptr %pointers, ptr %bound, i64 %copied, i1 false)
  %named = icmp ne ptr %names, null
  br i1 %named, label %keywords, label %arguments
keywords:
  %length.at = getelementptr %Tuple, ptr %names, i64 0, i32 2
  %length = load i64, ptr %length.at
  br label %arguments
arguments:
  %keyed = phi i64 [ 0, %copy ], [ %length, %keywords ]
  br label %argument

; Each argument: by its position, or by its name; an output that is not given is made later, another one is asked for.
argument:
  %i = phi i64 [ 0, %arguments ], [ %i.next, %noted ]
  %left = phi i64 [ %keyed, %arguments ], [ %left.next, %noted ]
  %spec = getelementptr %Spec, ptr %specs, i64 %i
  %i.more = icmp ult i64 %i, %all
  br i1 %i.more, label %how, label %known
how:
  %by.position = icmp ult i64 %i, %positional
  br i1 %by.position, label %given, label %search
search:
  %name.at = getelementptr %Spec, ptr %spec, i64 0, i32 6
  %name = load ptr, ptr %name.at
  br label %key
key:
  %k = phi i64 [ 0, %search ], [ %k.next, %differs ]
  %k.more = icmp ult i64 %k, %keyed
  br i1 %k.more, label %try, label %unnamed
try:
  %key.at = getelementptr %Tuple, ptr %names, i64 0, i32 3, i64 %k
  %key.is = load ptr, ptr %key.at
  %hit = icmp eq ptr %key.is, %name
  br i1 %hit, label %found, label %differs
differs:
  %k.next = add i64 %k, 1
  br label %key
unnamed: ; none is that very object: one of those left may be equal to it
  %unknown = icmp ne i64 %left, 0
  br i1 %unknown, label %like, label %absent.name
like:
  %e = phi i64 [ 0, %unnamed ], [ %e.next, %unlike ]
  %e.more = icmp ult i64 %e, %keyed
  br i1 %e.more, label %read, label %absent.name
read:
  %e.at = getelementptr %Tuple, ptr %names, i64 0, i32 3, i64 %e
  %e.is = load ptr, ptr %e.at
  %order.of = call i32 @PyUnicode_Compare(ptr %e.is, ptr %name)
  %equal = icmp eq i32 %order.of, 0
  br i1 %equal, label %found, label %unlike
unlike:
  %e.next = add i64 %e, 1
  br label %like
absent.name:
  %optional = icmp uge i64 %i, %wanted
  br i1 %optional, label %noted, label %slow
found:
  %key.found = phi i64 [ %k, %try ], [ %e, %read ]
  %k.place = add i64 %positional, %key.found
  br label %given
given:
  %place = phi i64 [ %i, %how ], [ %k.place, %found ]
  %used = phi i64 [ 0, %how ], [ 1, %found ]
  %a.at = getelementptr ptr, ptr %args, i64 %place
  %a = load ptr, ptr %a.at
  %fine = call i1 @suits(ptr %a, ptr %spec)
  br i1 %fine, label %take, label %slow
take:
  %a.data.at = getelementptr %Array, ptr %a, i64 0, i32 2
  %a.data = load ptr, ptr %a.data.at
  %order.at = getelementptr %Spec, ptr %spec, i64 0, i32 5
  %order = load i64, ptr %order.at
  %pointer.at = getelementptr ptr, ptr %pointers, i64 %order
  store ptr %a.data, ptr %pointer.at
  br label %noted
noted:
  %object = phi ptr [ null, %absent.name ], [ %a, %take ]
  %spent = phi i64 [ 0, %absent.name ], [ %used, %take ]
  %object.at = getelementptr ptr, ptr %objects, i64 %i
  store ptr %object, ptr %object.at
  %left.next = sub i64 %left, %spent
  %i.next = add i64 %i, 1
  br label %argument
known:
  %exact = icmp eq i64 %left, 0
  br i1 %exact, label %overlaps, label %slow
overlaps:
  %clash = call i1 @clash(ptr %specs, ptr %objects, i64 %all)
  br i1 %clash, label %slow, label %room
room:
  br i1 %long, label %occupy, label %outputs
occupy: ; the lock is let go: whoever comes meanwhile needs another workspace; the flag changes under the lock only
  %busy = load i32, ptr %busy.at
  %taken = icmp ne i32 %busy, 0
  br i1 %taken, label %slow, label %outputs

; Outputs: the caller's get one more reference, for they are returned; the others are made.
outputs:
  %o = phi i64 [ %wanted, %room ], [ %wanted, %occupy ], [ %o.next, %had ]
  %o.more = icmp ult i64 %o, %all
  br i1 %o.more, label %output, label %ready
output:
  %o.object.at = getelementptr ptr, ptr %objects, i64 %o
  %o.object = load ptr, ptr %o.object.at
  %absent = icmp eq ptr %o.object, null
  br i1 %absent, label %make, label %keep
keep:
  call void @Py_IncRef(ptr %o.object)
  br label %had
make:
  %o.dtype.at = getelementptr %Spec, ptr %specs, i64 %o, i32 0
  %o.dtype = load ptr, ptr %o.dtype.at
  %o.rank.at = getelementptr %Spec, ptr %specs, i64 %o, i32 1
  %o.rank = load i32, ptr %o.rank.at
  %o.shape.at = getelementptr %Spec, ptr %specs, i64 %o, i32 3
  %o.shape = load ptr, ptr %o.shape.at
  call void @Py_IncRef(ptr %o.dtype) ; which the next call takes over
  %o.maker.at = getelementptr %Spec, ptr %specs, i64 %o, i32 7
  %o.maker = load ptr, ptr %o.maker.at
  %made = call ptr %o.maker(ptr @PyArray_Type, ptr %o.dtype, i32 %o.rank, ptr %o.shape, ptr null, ptr null, i32 0, ptr null)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %undo, label %new
new:
  store ptr %made, ptr %o.object.at
  %made.data.at = getelementptr %Array, ptr %made, i64 0, i32 2
  %made.data = load ptr, ptr %made.data.at
  %o.order.at = getelementptr %Spec, ptr %specs, i64 %o, i32 5
  %o.order = load i64, ptr %o.order.at
  %o.pointer.at = getelementptr ptr, ptr %pointers, i64 %o.order
  store ptr %made.data, ptr %o.pointer.at
  br label %had
had:
  %o.next = add i64 %o, 1
  br label %outputs
undo: ; no memory: what was referred to so far is let go
  %u = phi i64 [ %wanted, %make ], [ %u.next, %drop ], [ %wanted, %untied ]
  %u.end = phi i64 [ %o, %make ], [ %u.end, %drop ], [ %all, %untied ]
  %u.more = icmp ult i64 %u, %u.end
  br i1 %u.more, label %drop, label %error
drop:
  %u.at = getelementptr ptr, ptr %objects, i64 %u
  %u.object = load ptr, ptr %u.at
  call void @Py_DecRef(ptr %u.object)
  %u.next = add i64 %u, 1
  br label %undo
error:
  ret { ptr, i1 } { ptr null, i1 true }

ready:
  br i1 %long, label %released, label %short
short:
  call void @launch(ptr %record, ptr %pointers)
  br label %results
released:
  store i32 1, ptr %busy.at
  %thread = call ptr @PyEval_SaveThread()
  call void @launch(ptr %record, ptr %pointers)
  call void @PyEval_RestoreThread(ptr %thread)
  store i32 0, ptr %busy.at
  br label %results

; None, the output, or a tuple of them.
results:
  %returned = sub i64 %all, %wanted
  switch i64 %returned, label %several [ i64 0, label %none
                                         i64 1, label %one ]
none:
  call void @Py_IncRef(ptr @_Py_NoneStruct)
  br label %made.call
one:
  %only.at = getelementptr ptr, ptr %objects, i64 %wanted
  %only = load ptr, ptr %only.at
  br label %made.call
several:
  %tuple = call ptr @PyTuple_New(i64 %returned)
  %tied = icmp ne ptr %tuple, null
  br i1 %tied, label %item, label %untied
untied:
  br label %undo
item:
  %t = phi i64 [ 0, %several ], [ %t.next, %put ]
  %t.more = icmp ult i64 %t, %returned
  br i1 %t.more, label %put, label %tuple.done
put:
  %t.place = add i64 %wanted, %t
  %t.at = getelementptr ptr, ptr %objects, i64 %t.place
  %t.object = load ptr, ptr %t.at
  %item.at = getelementptr %Tuple, ptr %tuple, i64 0, i32 3, i64 %t
  store ptr %t.object, ptr %item.at
  %t.next = add i64 %t, 1
  br label %item
tuple.done:
  br label %made.call
made.call:
  %result = phi ptr [ @_Py_NoneStruct, %none ], [ %only, %one ], [ %tuple, %tuple.done ]
  %called = insertvalue { ptr, i1 } { ptr null, i1 true }, ptr %result, 0
  ret { ptr, i1 } %called
slow:
  ret { ptr, i1 } zeroinitializer
}
