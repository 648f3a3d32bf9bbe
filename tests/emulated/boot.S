/* From 32 bits without pages (rom.S) to 64 bits: 256 MiB in pages of 2 MiB, then start() in bare.c. */
        .section .boot, "ax"
        .code32
        .global _start, directory, gates, sys_try
_start: mov     $stack_end, %esp
        mov     $pointers, %eax
        or      $3, %eax
        mov     %eax, top
        mov     $directory, %eax
        or      $3, %eax
        mov     %eax, pointers
        mov     $0x83, %eax                     /* present, to be written, of 2 MiB */
        mov     $directory, %edi
        mov     $128, %ecx
1:      mov     %eax, (%edi)
        add     $0x200000, %eax
        add     $8, %edi
        loop    1b
        mov     $top, %eax
        mov     %eax, %cr3
        mov     $0x40620, %eax                  /* CR4: PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
        mov     %eax, %cr4
        mov     $0xC0000080, %ecx               /* EFER: long mode */
        rdmsr
        or      $0x100, %eax
        wrmsr
        mov     $0x80010033, %eax               /* CR0: paging, what is read only is so for us, FPU */
        mov     %eax, %cr0
        lgdt    table
        ljmp    $8, $long
        .code64
long:   xor     %eax, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        mov     $stack_end, %rsp
        fninit
        call    start

/* sys_try(what, with, at): an exception goes back to where it was called. */
        .text
sys_try:
        push    %rbx
        push    %rbp
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        push    %rdx
        mov     %rsp, saved
        mov     %rdi, %rax
        mov     %rsi, %rdi
        mov     sys_stack, %rsp                 /* between pages that nobody may touch */
        call    *%rax
        mov     saved, %rsp
        xor     %eax, %eax
back:   pop     %rdx
        mov     %cr2, %rcx
        mov     %rcx, (%rdx)
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbp
        pop     %rbx
        ret
        .balign 16
gates:  .set    n, 1
        .rept   32
        .balign 16
        mov     $n, %eax
        jmp     caught
        .set    n, n + 1
        .endr
caught: cld
        mov     saved, %rsp
        jmp     back

        .data
        .balign 8
gdt:    .quad   0, 0x00AF9A000000FFFF
table:  .word   15
        .quad   gdt
        .balign 4096
top:    .skip   4096
pointers: .skip 4096
directory: .skip 4096
saved:  .skip   8
        .balign 16
        .skip   0x100000
stack_end:
        .section .note.GNU-stack, "", @progbits
