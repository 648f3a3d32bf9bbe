; Arrays that begin with a cache line. NumPy asks the handler of an array for its memory (NEP 49); this one asks NumPy's
; own for a line more, lets the array begin with the first line in it, a word in at least, and keeps in the word before
; how far in that is. `aligned.py` says what @LINE and @NAME are, and where `theirs`, NumPy's own handler, lies.

%Handler = type { [127 x i8], i8, ptr, ptr, ptr, ptr, ptr } ; name, version, context, malloc, calloc, realloc, free

@handler = global %Handler { [127 x i8] c"@NAME", i8 1, ptr @theirs, ptr @malloc, ptr @calloc, ptr @realloc, ptr @free }
@capsule = global ptr null ; which holds the handler
@theirs = external global %Handler
@theirs.capsule = external global i8
@PyArray_Type = external global i8
declare ptr @PyArray_NewFromDescr(ptr, ptr, i32, ptr, ptr, ptr, i32, ptr)
declare ptr @PyDataMem_GetHandler()
declare ptr @PyDataMem_SetHandler(ptr)
declare void @Py_IncRef(ptr)
declare void @Py_DecRef(ptr) ; of null, too
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)

; How far in an array begins whose memory is this.
define internal i64 @in(ptr %memory) {
  %at = ptrtoint ptr %memory to i64
  %over = urem i64 %at, @LINE
  %in = sub i64 @LINE, %over
  ret i64 %in
}

; Where the array begins, which is kept; null of null.
define internal ptr @begun(ptr %memory) {
  %none = icmp eq ptr %memory, null
  br i1 %none, label %out, label %some
some:
  %in = call i64 @in(ptr %memory)
  %begin = getelementptr i8, ptr %memory, i64 %in
  %kept.at = getelementptr i8, ptr %begin, i64 -8
  store i64 %in, ptr %kept.at
  ret ptr %begin
out:
  ret ptr null
}

; How far in it begins: what was kept.
define internal i64 @kept(ptr %begin) {
  %kept.at = getelementptr i8, ptr %begin, i64 -8
  %in = load i64, ptr %kept.at
  ret i64 %in
}

define internal ptr @malloc(ptr %own, i64 %size) {
  %more = add i64 %size, @LINE
  %context.at = getelementptr %Handler, ptr %own, i64 0, i32 2
  %context = load ptr, ptr %context.at
  %malloc.at = getelementptr %Handler, ptr %own, i64 0, i32 3
  %malloc = load ptr, ptr %malloc.at
  %memory = call ptr %malloc(ptr %context, i64 %more)
  %begin = call ptr @begun(ptr %memory)
  ret ptr %begin
}

define internal ptr @calloc(ptr %own, i64 %count, i64 %each) {
  %size = mul i64 %count, %each ; which NumPy knows to be a size
  %more = add i64 %size, @LINE
  %context.at = getelementptr %Handler, ptr %own, i64 0, i32 2
  %context = load ptr, ptr %context.at
  %calloc.at = getelementptr %Handler, ptr %own, i64 0, i32 4
  %calloc = load ptr, ptr %calloc.at
  %memory = call ptr %calloc(ptr %context, i64 %more, i64 1)
  %begin = call ptr @begun(ptr %memory)
  ret ptr %begin
}

; The content follows where the new memory lies otherwise within a line.
define internal ptr @realloc(ptr %own, ptr %begin, i64 %size) {
  %was = call i64 @kept(ptr %begin)
  %back = sub i64 0, %was
  %old = getelementptr i8, ptr %begin, i64 %back
  %more = add i64 %size, @LINE
  %context.at = getelementptr %Handler, ptr %own, i64 0, i32 2
  %context = load ptr, ptr %context.at
  %realloc.at = getelementptr %Handler, ptr %own, i64 0, i32 5
  %realloc = load ptr, ptr %realloc.at
  %memory = call ptr %realloc(ptr %context, ptr %old, i64 %more)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %out, label %some
some:
  %is = call i64 @in(ptr %memory)
  %from = getelementptr i8, ptr %memory, i64 %was
  %to = getelementptr i8, ptr %memory, i64 %is
  call void @llvm.memmove.p0.p0.i64(ptr %to, ptr %from, i64 %size, i1 false)
  %again = call ptr @begun(ptr %memory)
  ret ptr %again
out:
  ret ptr null
}

define internal void @free(ptr %own, ptr %begin, i64 %size) {
  %in = call i64 @kept(ptr %begin)
  %back = sub i64 0, %in
  %memory = getelementptr i8, ptr %begin, i64 %back
  %more = add i64 %size, @LINE
  %context.at = getelementptr %Handler, ptr %own, i64 0, i32 2
  %context = load ptr, ptr %context.at
  %free.at = getelementptr %Handler, ptr %own, i64 0, i32 6
  %free = load ptr, ptr %free.at
  call void %free(ptr %context, ptr %memory, i64 %more)
  ret void
}

; PyArray_NewFromDescr with this handler, set for just as long; as it is where somebody else's is set.
define ptr @make(ptr %type, ptr %dtype, i32 %rank, ptr %shape, ptr %strides, ptr %data, i32 %flags, ptr %for) {
  %now = call ptr @PyDataMem_GetHandler()
  %own = icmp eq ptr %now, @theirs.capsule
  br i1 %own, label %set, label %leave
set:
  %capsule = load ptr, ptr @capsule
  %old = call ptr @PyDataMem_SetHandler(ptr %capsule)
  call void @Py_DecRef(ptr %old)
  %unset = icmp eq ptr %old, null
  br i1 %unset, label %leave, label %new
leave:
  call void @PyErr_Clear()
  call void @Py_DecRef(ptr %now)
  %plain = call ptr @PyArray_NewFromDescr(ptr %type, ptr %dtype, i32 %rank, ptr %shape, ptr %strides, ptr %data, i32 %flags, ptr %for)
  ret ptr %plain
new:
  %error = alloca [3 x ptr]
  %value.at = getelementptr ptr, ptr %error, i64 1
  %trace.at = getelementptr ptr, ptr %error, i64 2
  %made = call ptr @PyArray_NewFromDescr(ptr %type, ptr %dtype, i32 %rank, ptr %shape, ptr %strides, ptr %data, i32 %flags, ptr %for)
  call void @PyErr_Fetch(ptr %error, ptr %value.at, ptr %trace.at)
  %mine = call ptr @PyDataMem_SetHandler(ptr %now)
  call void @Py_DecRef(ptr %now)
  call void @Py_DecRef(ptr %mine)
  %stays = icmp eq ptr %mine, null
  br i1 %stays, label %lost, label %back
back:
  %what = load ptr, ptr %error
  %value = load ptr, ptr %value.at
  %trace = load ptr, ptr %trace.at
  call void @PyErr_Restore(ptr %what, ptr %value, ptr %trace)
  ret ptr %made
lost: ; no memory to set it back with: the error says so
  call void @Py_DecRef(ptr %made)
  ret ptr null
}

; An array of a type and shape.
define ptr @array(ptr %dtype, i32 %rank, ptr %shape) {
  call void @Py_IncRef(ptr %dtype) ; which the next call takes over
  %made = call ptr @make(ptr @PyArray_Type, ptr %dtype, i32 %rank, ptr %shape, ptr null, ptr null, i32 0, ptr null)
  ret ptr %made
}
