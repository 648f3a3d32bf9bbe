/* The last 64 KiB of memory, in the BIOS's place: to 32 bits, the first `sectors` of the disk to 1 MiB, and there. */
        .code16
        .text
start:  cli
        lgdtl   %cs:table - start
        mov     %cr0, %eax
        or      $1, %al
        mov     %eax, %cr0
        ljmpl   $8, $0xF0000 + protected - start
        .code32
protected:
        mov     $16, %eax
        mov     %eax, %ds
        mov     %eax, %es
        mov     %eax, %ss
        cld
        mov     $0x100000, %edi
        xor     %ebx, %ebx                      /* the sector */
1:      mov     $0x1F2, %edx                    /* ATA, PIO: one sector, its number, READ SECTORS */
        mov     $1, %al
        outb    %al, %dx
        inc     %edx
        mov     %ebx, %eax
        outb    %al, %dx
        inc     %edx
        shr     $8, %eax
        outb    %al, %dx
        inc     %edx
        shr     $8, %eax
        outb    %al, %dx
        inc     %edx
        shr     $8, %eax
        or      $0xE0, %al
        outb    %al, %dx
        inc     %edx
        mov     $0x20, %al
        outb    %al, %dx
2:      inb     %dx, %al
        and     $0x88, %al                      /* busy, or with data */
        cmp     $8, %al
        jne     2b
        mov     $0x1F0, %edx
        mov     $256, %ecx
        rep     insw
        inc     %ebx
        cmp     $sectors, %ebx
        jb      1b
        mov     $0x100000, %eax
        jmp     *%eax
        .balign 8
gdt:    .quad   0, 0x00CF9A000000FFFF, 0x00CF92000000FFFF
table:  .word   23
        .long   0xF0000 + gdt - start
        .org    0xFFF0
        .code16
        ljmp    $0xF000, $0
        .org    0x10000
